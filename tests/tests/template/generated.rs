//! What the declarations make.

use std::fs;

use crate::workspace;

#[test]
fn every_written_file_is_what_the_command_writes() {
    for (path, text) in rowmill_template::files(&workspace()).unwrap() {
        let written = fs::read_to_string(workspace().join(path)).unwrap();
        let differs = written.lines().zip(text.lines()).position(|(written, expected)| written != expected);
        assert!(
            written == text,
            "{path} is not up to date from line {}: run `cargo run --bin rowmill-template`",
            differs.map_or(written.lines().count().min(text.lines().count()), |line| line) + 1
        );
    }
}
