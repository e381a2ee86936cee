"""Users of archives that require credentials. Ours has a users file, and the real archive has an authenticator."""

import hashlib
from base64 import b64encode
from dataclasses import dataclass


def scrypt_secret(password):
    """Returns the scrypt hash of a password in the format of the users file, computed as in our documentation."""
    salt = b"a salt for tests"
    hashed = hashlib.scrypt(password, salt=salt, n=2**12, r=8, p=1, dklen=32)
    salt, hashed = (b64encode(part).decode().rstrip("=") for part in (salt, hashed))
    return f"$scrypt$ln=12,r=8,p=1${salt}${hashed}"


@dataclass
class Security:
    """Settings of an archive that requires credentials, with credentials that the archive accepts and with credentials
    that it challenges."""

    settings: dict
    accepted: bytes
    challenged: bytes


def security(kind, directory):
    """Returns the `Security` of an archive of a kind. Writes the users file to `directory`."""
    if kind == "java":
        settings = {"aeron.archive.authenticator.supplier": "ChallengingAuthenticator"}
        return Security(settings, accepted=b"secret", challenged=b"ask")
    users = directory / "users.toml"
    users.touch(mode=0o600)
    users.write_text(
        f"""
        [[user]]
        name = "adam"
        role = "admin"
        secret = "{scrypt_secret(b"adam's")}"

        [[user]]
        name = "ann"
        role = "admin"
        key = "{bytes(32).hex()}"
        """
    )
    settings = {
        "aeron.archive.users.file": str(users),
        "aeron.archive.authenticator.supplier": "io.aeron.samples.archive.SampleAuthenticatorSupplier",
    }
    return Security(settings, accepted=b"adam:adam's", challenged=b"ann")
