//! Measures the limit of the machine's file system. One thread writes blocks to new files, and then reads the files.
//!
//! An archive writes the same bytes, and does more work. So no archive can record to new files at a higher rate.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::arguments::Arguments;
use crate::one_way::cpu_seconds;

/// Length of each file in bytes: the default segment length of an archive.
const FILE_LENGTH: usize = 128 << 20;
/// Length of each write and read in bytes: the longest block of an archive with default settings.
const BLOCK_LENGTH: usize = 1 << 20;

/// Writes `arguments.bytes` bytes to files in a new directory, and reads the files. Prints the rates of writing and
/// reading in bytes per second, and their CPU times in nanoseconds per KiB.
pub fn measure(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)?;
    let count = arguments.bytes.div_ceil(FILE_LENGTH).max(1);
    let mut block = vec![1_u8; BLOCK_LENGTH];
    let write = timed(count, |number| write_file(&path(directory, number), &block))?;
    let read = timed(count, |number| {
        read_file(&path(directory, number), &mut block)
    })?;
    fs::remove_dir_all(directory)?;
    println!(
        "{{\"write\": {}, \"write_cost\": {}, \"read\": {}, \"read_cost\": {}}}",
        write.rate, write.cost, read.rate, read.cost
    );
    Ok(())
}

struct Speed {
    /// Bytes per second.
    rate: f64,
    /// Nanoseconds of CPU time per KiB.
    cost: f64,
}

fn timed(
    count: usize,
    mut each: impl FnMut(usize) -> std::io::Result<()>,
) -> std::io::Result<Speed> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for number in 0..count {
        each(number)?;
    }
    let bytes = (count * FILE_LENGTH) as f64;
    Ok(Speed {
        rate: bytes / start.elapsed().as_secs_f64(),
        cost: (cpu_seconds() - cpu) * 1e9 / (bytes / 1024.0),
    })
}

fn write_file(path: &Path, block: &[u8]) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(FILE_LENGTH as u64)?;
    (0..FILE_LENGTH)
        .step_by(block.len())
        .try_for_each(|offset| file.write_all_at(block, offset as u64))
}

fn read_file(path: &Path, block: &mut [u8]) -> std::io::Result<()> {
    let file = File::open(path)?;
    (0..FILE_LENGTH)
        .step_by(block.len())
        .try_for_each(|offset| file.read_exact_at(block, offset as u64))
}

fn path(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("{number}.rec"))
}
