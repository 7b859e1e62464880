//! `cargo run --bin rowmill-template`: writes `template.yaml` and the tables that follow from it.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    rowmill_template::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}
