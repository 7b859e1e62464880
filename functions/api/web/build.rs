//! Embeds the files in `assets/`: as they are, compressed, and under a path that changes with the content of any of them.
//!
//! All modules lie in one folder whose name is the hash of everything, so that they can import each other by plain relative
//! names. That folder may be cached for ever. `index.html` names it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// Stands for the folder's path in `index.html`.
const FOLDER: &str = "{{assets}}";

/// Stands for the preload links of all modules in `index.html`.
const MODULES: &str = "<!-- modules -->";

fn main() {
    println!("cargo::rerun-if-changed=assets");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join("assets");
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let name = |file: &Path| file.file_name().expect("a name").to_str().expect("ASCII").to_owned();
    let assets: Vec<(String, Vec<u8>)> =
        files.iter().map(|file| (name(file), fs::read(file).expect("a file"))).collect();

    let mut hash = Sha256::new();
    for (name, bytes) in &assets {
        hash.update(format!("{name} {}\n", bytes.len()));
        hash.update(bytes);
    }
    let version: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();

    let scripts = assets.iter().filter(|(name, _)| name.ends_with(".js"));
    let links = scripts.map(|(name, _)| format!("<link rel=\"modulepreload\" href=\"{FOLDER}/{name}\">"));
    let links = links.collect::<Vec<_>>().join("\n    ");
    let mut table = format!("/// The folder of all assets.\npub const VERSION: &str = \"{version}\";\n");
    table += "/// The page, then its assets.\npub static FILES: &[File] = &[\n";
    for (name, bytes) in assets {
        let bytes = match name.as_str() {
            "index.html" => {
                let text = String::from_utf8(bytes).expect("UTF-8").replace(MODULES, &links);
                text.replace(FOLDER, &format!("assets/{version}")).into_bytes()
            }
            _ => bytes,
        };
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&bytes).expect("memory");
        fs::write(out.join(&name), bytes).expect("a file");
        fs::write(out.join(format!("{name}.gz")), gzip.finish().expect("memory")).expect("a file");
        let include = |suffix: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}{suffix}\"))");
        writeln!(table, "    File {{ name: {name:?}, plain: {}, gzip: {} }},", include(""), include(".gz"))
            .expect("text");
    }
    table += "];\n";
    fs::write(out.join("files.rs"), table).expect("a file");
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
