//! Sets `AERON_COMMIT` to the commit of the source, unless the build environment sets it.
//!
//! An unoptimised build has no commit: with it, every commit would build all crates again.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=AERON_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("AERON_COMMIT").is_some()
        || std::env::var("PROFILE").is_ok_and(|name| name == "debug")
    {
        return;
    }
    if Path::new("../../.git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    }
    let git = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output();
    if let Ok(output) = git
        && output.status.success()
    {
        let commit = String::from_utf8_lossy(&output.stdout);
        println!("cargo:rustc-env=AERON_COMMIT={}", commit.trim());
    }
}
