//! The version that driver and client show in counter labels and on the command line.

/// Version of Aeron whose behaviour this software implements.
pub const TEXT: &str = "1.52.2";
/// [`TEXT`] as a semantic version: major << 16 | minor << 8 | patch.
pub const VALUE: i32 = (1 << 16) | (52 << 8) | 2;
/// Commit from which this software was built; `unknown` if it was built outside a repository.
pub const COMMIT: &str = match option_env!("AERON_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_numeric_version_equals_the_version_text() {
        assert_eq!(super::VALUE, 78_850);
    }
}
