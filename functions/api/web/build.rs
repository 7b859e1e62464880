//! Embeds the page: the files in `assets/`, as they are and compressed, under a path that changes with their content.
//!
//! The modules become one script, so that a browser asks for four files and not for one per module. The folder of the
//! assets is named by their hash and may be cached for ever. `index.html` names it.

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

const PAGE: &str = "index.html";

/// The module that imports all others, and the script that they become.
const SCRIPT: &str = "app.js";

fn main() {
    println!("cargo::rerun-if-changed=assets");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join("assets");
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let name = |file: &Path| file.file_name().expect("a name").to_str().expect("ASCII").to_owned();
    let sources = files.iter().map(|file| (name(file), fs::read_to_string(file).expect("UTF-8")));
    let (modules, mut assets): (Vec<_>, Vec<_>) = sources.partition(|(name, _)| name.ends_with(".js"));
    let mut script = Script { modules: &modules, joined: Vec::new(), text: String::new() };
    script.join(SCRIPT);
    assert_eq!(script.joined.len(), modules.len(), "a module that no other one imports: {:?}", script.joined);
    assets.push((SCRIPT.to_owned(), script.text));

    let mut hash = Sha256::new();
    for (name, text) in &assets {
        hash.update(format!("{name} {}\n{text}", text.len()));
    }
    let version: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();

    let mut table = format!("/// The folder of all assets.\npub const VERSION: &str = \"{version}\";\n");
    table += "/// The page and its assets.\npub static FILES: &[File] = &[\n";
    for (name, text) in assets {
        let text = if name == PAGE { text.replace(FOLDER, &format!("assets/{version}")) } else { text };
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(text.as_bytes()).expect("memory");
        fs::write(out.join(&name), text).expect("a file");
        fs::write(out.join(format!("{name}.gz")), gzip.finish().expect("memory")).expect("a file");
        let include = |suffix: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}{suffix}\"))");
        writeln!(table, "    File {{ name: {name:?}, plain: {}, gzip: {} }},", include(""), include(".gz"))
            .expect("text");
    }
    table += "];\n";
    fs::write(out.join("files.rs"), table).expect("a file");
}

/// Modules as one script: each is a function, called once after those that it imports, and returns what it exports.
///
/// An import is a line `import … from "./x.js";` or `import "./x.js";`, an export a line that begins with `export` and
/// a declaration that is never assigned again. The build fails on anything else.
struct Script<'a> {
    modules: &'a [(String, String)],
    joined: Vec<&'a str>,
    text: String,
}

impl<'a> Script<'a> {
    fn join(&mut self, name: &'a str) {
        if self.joined.contains(&name) {
            return;
        }
        self.joined.push(name);
        let module = self.modules.iter().find(|(one, _)| one == name);
        let (_, source) = module.unwrap_or_else(|| panic!("there is no module {name}"));
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in source.lines() {
            if let Some(import) = line.strip_prefix("import ") {
                let parts = import.strip_suffix("\";").and_then(|import| import.split_once("\"./"));
                let (names, from) = parts.unwrap_or_else(|| panic!("{name}: {line}"));
                self.join(from);
                let names = names.trim_end().trim_end_matches("from").trim_end();
                let names = names.strip_prefix("* as ").map_or_else(|| names.replace(" as ", ": "), str::to_owned);
                if !names.is_empty() {
                    writeln!(body, "const {names} = {};", exports_of(from)).expect("text");
                }
            } else if let Some(declaration) = line.strip_prefix("export ") {
                let declared = ["async function ", "function ", "class ", "const "]
                    .iter()
                    .find_map(|kind| declaration.strip_prefix(kind))
                    .unwrap_or_else(|| panic!("{name}: {line}"));
                exports.push(declared.split(|c: char| !c.is_ascii_alphanumeric()).next().expect("a name"));
                body += declaration;
                body.push('\n');
            } else {
                body += line;
                body.push('\n');
            }
        }
        let exports = exports.join(", ");
        writeln!(self.text, "const {} = (() => {{\n{body}return {{ {exports} }};\n}})();", exports_of(name))
            .expect("text");
    }
}

/// The variable with what a module exports.
fn exports_of(name: &str) -> String {
    format!("${}", name.trim_end_matches(".js").replace('-', "_"))
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
