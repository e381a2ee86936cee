//! [`Users`]: the content of a users file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aeron_protocol::archive::Role;
use scrypt::password_hash::PasswordVerifier as _;
use scrypt::phc::PasswordHash;
use scrypt::{Params, Scrypt};
use toml::{Table, Value};

/// Permissions of the group and of other users. The file must not have them.
const SHARED_PERMISSIONS: u32 = 0o077;
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 16..=64;
/// Maximum memory for the check of one password, in bytes.
const MAX_SCRYPT_MEMORY: u64 = 256 * 1024 * 1024;
/// Maximum number of lanes (scrypt's `p`) for the check of one password. The lanes are computed one
/// after the other.
const MAX_SCRYPT_LANES: u32 = 16;

/// The users of an archive, by their names.
#[derive(Debug, Clone)]
pub struct Users {
    users: BTreeMap<String, User>,
}

/// A user.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub role: Role,
    pub proof: Proof,
}

/// The stored secret against which a client's proof of identity is checked.
#[derive(Clone, PartialEq)]
pub(super) enum Proof {
    /// The hash of the password.
    Password(Box<PasswordHash>),
    /// The key that signs a challenge.
    Key(Vec<u8>),
}

/// Why a users file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("users file {}: {problem}", path.display())]
pub struct UsersFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// The problem and the remedy.
    pub problem: String,
}

impl Users {
    /// Reads a users file.
    ///
    /// # Errors
    /// The file cannot be read, other users have permissions for it, or it is not a list of users.
    pub fn load(path: &Path) -> Result<Self, UsersFileError> {
        let refused = |problem| UsersFileError {
            path: path.to_owned(),
            problem,
        };
        let unreadable = |error: io::Error| refused(format!("cannot be read: {error}"));
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & SHARED_PERMISSIONS != 0 {
            return Err(refused(format!(
                "mode {mode:04o} lets others use it: set mode 0600 with chmod"
            )));
        }
        Self::parse(&fs::read_to_string(path).map_err(unreadable)?).map_err(refused)
    }

    /// Parses the text of a users file. The error is a text about the problem.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // Uses only the message of the parser's error, because the full error quotes lines of the
        // file, which may contain secrets.
        let mut table: Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let listed = match table.remove("user") {
            Some(Value::Array(listed)) if !listed.is_empty() => listed,
            _ => return Err("names no user: add [[user]] sections".to_owned()),
        };
        if let Some(other) = table.keys().next() {
            return Err(format!("{other} is not known: use [[user]] sections"));
        }
        let mut users = BTreeMap::new();
        for (index, value) in listed.into_iter().enumerate() {
            let number = index + 1;
            let Value::Table(section) = value else {
                return Err(format!("user {number} is not a section"));
            };
            let (name, user) = user_of(section, number)?;
            if users.insert(name.clone(), user).is_some() {
                return Err(format!("{name} is there twice: give each user one section"));
            }
        }
        Ok(Self { users })
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Returns whether there is no user. A file has at least one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns whether a user has the same secret in both lists.
    pub(super) fn has_same_proof(&self, other: &Self, name: &str) -> bool {
        match (self.get(name), other.get(name)) {
            (Some(user), Some(other)) => user.proof == other.proof,
            _ => false,
        }
    }

    /// Returns whether a user has a password. Takes about 40 ms with the recommended cost, also for an unknown user.
    #[must_use]
    pub fn has_password(&self, name: &str, password: &[u8]) -> bool {
        let known = self.get(name).and_then(|user| match &user.proof {
            Proof::Password(hash) => Some(&**hash),
            Proof::Key(_) => None,
        });
        let Some(hash) = known.or_else(|| self.any_password_hash()) else {
            return false;
        };
        let is_right = Scrypt::new().verify_password(password, hash).is_ok();
        is_right && known.is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// Returns the password hash of an arbitrary user. The password of an unknown user is checked
    /// against this hash. Otherwise the time of a rejection would reveal which users exist.
    pub(super) fn any_password_hash(&self) -> Option<&PasswordHash> {
        self.users.values().find_map(|user| match &user.proof {
            Proof::Password(hash) => Some(&**hash),
            Proof::Key(_) => None,
        })
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Proof {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Password(_) => "Password",
            Self::Key(_) => "Key",
        })
    }
}

fn user_of(mut section: Table, number: usize) -> Result<(String, User), String> {
    let mut text = |field: &str| match section.remove(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{field} of user {number} is not a text")),
    };
    let (name, role) = (text("name")?, text("role")?);
    let (secret, key) = (text("secret")?, text("key")?);
    if let Some(other) = section.keys().next() {
        return Err(format!(
            "{other} of user {number} is not known: use name, role, and secret or key"
        ));
    }
    let name = name.filter(|name| !name.is_empty() && !name.contains(':'));
    let Some(name) = name else {
        return Err(format!(
            "user {number} needs a name, which is not empty and has no colon"
        ));
    };
    let Some(role) = role.as_deref().and_then(Role::from_name) else {
        return Err(format!("{name} needs a role: read, record or admin"));
    };
    let proof = match (secret, key) {
        (Some(secret), None) => Proof::Password(Box::new(password_hash(&name, &secret)?)),
        (None, Some(key)) => Proof::Key(key_of(&name, &key)?),
        _ => return Err(format!("{name} needs either a secret or a key")),
    };
    Ok((name, User { role, proof }))
}

fn password_hash(name: &str, secret: &str) -> Result<PasswordHash, String> {
    let hash = PasswordHash::new(secret)
        .ok()
        .filter(|hash| hash.algorithm == scrypt::phc::ALG_ID)
        .filter(|hash| hash.salt.is_some() && hash.hash.is_some());
    let Some(hash) = hash else {
        return Err(format!(
            "secret of {name} is not the scrypt hash of a password: use a text such as $scrypt$ln=14,r=8,p=1$salt$hash"
        ));
    };
    let parameter = |name| hash.params.get_decimal(name).unwrap_or(0);
    let (log_n, r, p) = (parameter("ln"), parameter("r"), parameter("p"));
    let memory = 1_u64
        .checked_shl(log_n)
        .unwrap_or(u64::MAX)
        .saturating_mul(128)
        .saturating_mul(r.into());
    if memory > MAX_SCRYPT_MEMORY || p > MAX_SCRYPT_LANES || Params::try_from(&hash).is_err() {
        return Err(format!(
            "secret of {name} has the parameters ln={log_n}, r={r}, p={p}, which take too much memory or are missing: use ln=14,r=8,p=1"
        ));
    }
    Ok(hash)
}

fn key_of(name: &str, text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let key: Option<Vec<u8>> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            &[high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect();
    key.filter(|key| KEY_LENGTHS.contains(&key.len()))
        .ok_or_else(|| format!("key of {name} is not 16 to 64 bytes in hexadecimal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str =
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";

    fn user(rest: &str) -> String {
        format!("[[user]]\nname = \"ann\"\nrole = \"read\"\n{rest}\n")
    }

    #[test]
    fn users_have_a_password_or_a_key() {
        let text = format!(
            "{}[[user]]\nname = \"bob\"\nrole = \"admin\"\nkey = \"{}\"",
            user(&format!("secret = \"{SECRET}\"")),
            "0aFF".repeat(8)
        );
        let users = Users::parse(&text).unwrap();
        let (ann, bob) = (users.get("ann").unwrap(), users.get("bob").unwrap());
        assert_eq!((ann.role, bob.role), (Role::Read, Role::Admin));
        assert!(matches!(ann.proof, Proof::Password(_)));
        assert!(matches!(&bob.proof, Proof::Key(key) if *key == [0x0A, 0xFF].repeat(8)));
        assert!(users.get("carl").is_none());
        assert!(!format!("{users:?}").contains("nFNh"));
    }

    #[test]
    fn only_a_user_has_its_password() {
        // The secret is that of the password "password".
        let text = format!(
            "{}[[user]]\nname = \"bob\"\nrole = \"read\"\nkey = \"{}\"",
            user(&format!("secret = \"{SECRET}\"")),
            "00".repeat(16)
        );
        let users = Users::parse(&text).unwrap();
        for (name, password, expected) in [
            ("ann", "password", true),
            ("ann", "Password", false),
            ("bob", "password", false),
            ("carl", "password", false),
            ("", "", false),
        ] {
            let found = users.has_password(name, password.as_bytes());
            assert_eq!(found, expected, "{name} {password}");
        }
    }

    #[test]
    fn the_error_of_an_invalid_users_file_has_a_remedy_and_no_secrets() {
        let secret = format!("secret = \"{SECRET}\"");
        for (text, expected) in [
            (String::new(), "names no user: add [[user]] sections"),
            ("user = 3".into(), "names no user: add [[user]] sections"),
            (
                format!("group = 1\n{}", user(&secret)),
                "group is not known: use [[user]] sections",
            ),
            (user(""), "ann needs either a secret or a key"),
            (
                user(&format!("{secret}\nkey = \"00\"")),
                "ann needs either a secret or a key",
            ),
            (
                user(&format!("{secret}\ncolour = 3")),
                "colour of user 1 is not known: use name, role, and secret or key",
            ),
            (
                user(&secret) + &user(&secret),
                "ann is there twice: give each user one section",
            ),
            (
                user("secret = \"password\""),
                "secret of ann is not the scrypt hash of a password: use a text such as $scrypt$ln=14,r=8,p=1$salt$hash",
            ),
            (
                user(&secret.replace("ln=16", "ln=30")),
                "secret of ann has the parameters ln=30, r=8, p=1, which take too much memory or are missing: use ln=14,r=8,p=1",
            ),
            (
                user("key = \"0g\""),
                "key of ann is not 16 to 64 bytes in hexadecimal",
            ),
            (
                user(&secret).replace("read", "write"),
                "ann needs a role: read, record or admin",
            ),
            (
                user(&secret).replace("\"ann\"", "\"a:b\""),
                "user 1 needs a name, which is not empty and has no colon",
            ),
            (
                user(&secret).replace("\"ann\"", "7"),
                "name of user 1 is not a text",
            ),
        ] {
            assert_eq!(Users::parse(&text).unwrap_err(), expected);
        }
        let error = Users::parse("[[user]]\nsecret = \"hush\" hush").unwrap_err();
        assert!(!error.contains("hush"), "{error}");
    }

    #[test]
    fn a_users_file_that_other_users_can_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), user(&format!("secret = \"{SECRET}\""))).unwrap();
        Users::load(file.path()).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let error = Users::load(file.path()).unwrap_err().to_string();
        assert!(
            error.ends_with(": mode 0640 lets others use it: set mode 0600 with chmod"),
            "{error}"
        );
        let error = Users::load(Path::new("/no/such/users")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("users file /no/such/users: cannot be read: ")
        );
    }
}
