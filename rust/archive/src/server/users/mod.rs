//! Users of an archive. A file has their names, secrets and roles.
//!
//! The setting `aeron.archive.users.file` is the path of a TOML file that only its owner can read
//! (mode 0600). The archive reads the file at its start, and when it reloads:
//!
//! ```toml
//! [[user]]
//! name = "dashboard"
//! role = "read"
//! secret = "$scrypt$ln=14,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E"
//!
//! [[user]]
//! name = "ticks"
//! role = "record"
//! key = "9f3c5a0d7b1e4c6f8a2d9f3c5a0d7b1e"
//! ```
//!
//! * A user with a `secret` connects with the credentials `name:password`. **The password crosses the network in
//!   clear**: use it over IPC, or in a network that you trust. The file has the scrypt hash of the password as a
//!   PHC string. This Python program computes the string:
//!
//!   ```python
//!   import base64, getpass, hashlib, os
//!
//!   salt = os.urandom(16)
//!   hashed = hashlib.scrypt(getpass.getpass().encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)
//!   encoded = (base64.b64encode(part).decode().rstrip("=") for part in (salt, hashed))
//!   print("$scrypt$ln=14,r=8,p=1$" + "$".join(encoded))
//!   ```
//!
//! * A user with a `key` (16 to 64 bytes, in hexadecimal) connects with the credentials `name`. The archive challenges
//!   the client with 32 random bytes, and the client responds with the HMAC-SHA-256 of these bytes under the key. The
//!   key never crosses the network.
//!
//! In both cases, the requests themselves are neither encrypted nor signed. The declaration
//! of a request names its [`Role`](aeron_protocol::archive::Role).

mod authenticator;
mod checks;
mod file;
mod function;
mod roles;

pub(super) use authenticator::UsersAuthenticator;
pub use file::{Users, UsersFileError};
pub(super) use function::FunctionAuthenticator;
pub use function::{AuthenticateFunction, CredentialsCheck};
pub(super) use roles::RoleService;

use file::Proof;
