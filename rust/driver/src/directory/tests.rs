//! Tests of driver directories and lock files that several threads use at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

const ROUNDS: usize = 1_000;

fn context(dir: &Path) -> Context {
    Context {
        dir: dir.to_owned(),
        dir_delete_on_shutdown: true,
        ..Context::default()
    }
}

#[test]
fn a_driver_is_refused_only_because_another_driver_is_active_in_the_directory() {
    let place = tempfile::tempdir().unwrap();
    let context = context(&place.path().join("aeron"));
    let is_taken = AtomicBool::new(false);
    let run = || {
        for _ in 0..ROUNDS {
            match DriverDirectory::take(&context) {
                Ok(mut directory) => {
                    assert!(
                        !is_taken.swap(true, Ordering::SeqCst),
                        "two drivers have taken the directory"
                    );
                    assert!(context.dir.join("images").is_dir());
                    is_taken.store(false, Ordering::SeqCst);
                    directory.close().unwrap();
                }
                Err(StartError::ActiveDriver(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(run);
        }
    });
    assert!(!context.dir.exists());
}

#[test]
fn a_marker_that_is_read_while_it_is_written_is_complete_or_empty() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    let lock = LockFile::create(&path).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20 * ROUNDS {
                let marker = [Marker::Empty, Marker::Embedded][round % 2];
                marker.write(lock.file()).unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            assert!(Marker::read(&path).unwrap().is_some());
        }
    });
}
