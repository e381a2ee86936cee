//! [`CredentialsSupplier`]: credentials of a client for an archive.

/// Supplies credentials to an archive's authenticator.
pub trait CredentialsSupplier: Send + Sync {
    /// Returns the credentials for the connect request, or no bytes. The client calls this function
    /// once for each connection.
    fn encoded_credentials(&self) -> Vec<u8>;

    /// Returns the credentials for a challenge of the archive.
    fn on_challenge(&self, encoded_challenge: &[u8]) -> Vec<u8>;
}

/// Supplier without credentials. Its response to a challenge is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCredentials;

impl CredentialsSupplier for NoCredentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}
