//! Functions as Lambda takes them: built by one cargo invocation, zipped as `bootstrap`, named by content.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A processor Lambda runs functions on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// Graviton.
    #[value(name = "arm64")]
    Arm64,
    /// Intel and AMD.
    #[value(name = "x86_64")]
    X86_64,
}

impl Architecture {
    /// The processor this program runs on, if Lambda has it.
    pub fn of_this_machine() -> Option<Self> {
        match std::env::consts::ARCH {
            "aarch64" => Some(Self::Arm64),
            "x86_64" => Some(Self::X86_64),
            _ => None,
        }
    }

    /// The processor CloudFormation calls so.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Arm64, Self::X86_64].into_iter().find(|architecture| architecture.name() == name)
    }

    /// Its name in CloudFormation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::X86_64 => "x86_64",
        }
    }
}

/// How the functions are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// Plain cargo, for functions that will run on this very machine.
    Cargo {
        /// The `release` profile instead of `dev`.
        release: bool,
    },
    /// cargo-lambda, which links against the C library of Lambda's image and compiles for either processor.
    CargoLambda(Architecture),
}

/// A built function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The package, and the binary's name.
    pub package: String,
    /// The executable.
    pub path: PathBuf,
}

/// A function ready to be uploaded.
#[derive(Debug, Clone)]
pub struct Package {
    /// The package it is built from.
    pub name: String,
    /// Key in the artifacts bucket, from the executable's content: an unchanged function has an unchanged key.
    pub key: String,
    executable: Vec<u8>,
}

/// Why the functions could not be packaged.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// cargo is not there.
    #[error("cannot start cargo")]
    NoCargo(#[source] std::io::Error),
    /// cargo-lambda is not there.
    #[error(
        "cargo-lambda is not installed; deploying to AWS needs it to build for Lambda's image\n\
         install it with one of\n  pip3 install cargo-lambda\n  brew install cargo-lambda/tap/cargo-lambda\n  \
         cargo install --locked cargo-lambda"
    )]
    NoCargoLambda,
    /// The functions do not compile. cargo has said why.
    #[error("the functions do not build ({0}); cargo's messages are above")]
    Build(ExitStatus),
    /// cargo succeeded and left nothing where it should.
    #[error("cargo built no binary `{0}`")]
    Missing(String),
    /// An executable cannot be read.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Builds the binaries named, all in one go. What cargo has to say goes to standard error as it comes.
///
/// # Errors
///
/// See [`PackageError`].
pub async fn build(workspace: &Path, packages: &[String], compiler: Compiler) -> Result<Vec<Binary>, PackageError> {
    if packages.is_empty() {
        // cargo takes no name for every name.
        return Ok(Vec::new());
    }
    let found = match compiler {
        Compiler::Cargo { release } => build_here(workspace, packages, release).await?,
        Compiler::CargoLambda(architecture) => build_for_lambda(workspace, packages, architecture).await?,
    };
    packages
        .iter()
        .map(|package| match found.get(package) {
            Some(path) => Ok(Binary { package: package.clone(), path: path.clone() }),
            None => Err(PackageError::Missing(package.clone())),
        })
        .collect()
}

/// The binaries are selected by `--bin` from the root of the workspace and not by `--package`: this way cargo gives
/// dependencies the features the whole workspace asks for, and does not compile the AWS SDK once more with others.
fn bins(packages: &[String]) -> impl Iterator<Item = &str> {
    packages.iter().flat_map(|package| ["--bin", package.as_str()])
}

/// The cargo this program was started by, if it was, at the root of the workspace.
fn cargo(workspace: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace).stdin(Stdio::null()).kill_on_drop(true);
    // An outer `cargo run` or `cargo test` describes this package here. Build scripts that watch those variables (ring's
    // does) would run again, and everything above them be compiled again, each time the outer command is another.
    for (name, _) in std::env::vars_os() {
        let of_outer = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if of_outer.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// What cargo says about a finished target, as far as it matters here.
#[derive(Deserialize)]
struct Artifact {
    target: ArtifactTarget,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
}

async fn build_here(
    workspace: &Path,
    packages: &[String],
    release: bool,
) -> Result<BTreeMap<String, PathBuf>, PackageError> {
    let mut command = cargo(workspace);
    command.args(["build", "--message-format=json-render-diagnostics"]).args(bins(packages));
    if release {
        command.arg("--release");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(PackageError::NoCargo)?;
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let mut found = BTreeMap::new();
    // A line that cannot be read ends the listing like the last one; cargo's exit status tells which it was.
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(Artifact { target, executable: Some(path) }) = serde_json::from_str(&line) {
            found.insert(target.name, path);
        }
    }
    succeeded(child.wait().await)?;
    Ok(found)
}

async fn build_for_lambda(
    workspace: &Path,
    packages: &[String],
    architecture: Architecture,
) -> Result<BTreeMap<String, PathBuf>, PackageError> {
    let probe = cargo(workspace)
        .args(["lambda", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await
        .map_err(PackageError::NoCargo)?;
    if !probe.success() {
        return Err(PackageError::NoCargoLambda);
    }
    let processor = match architecture {
        Architecture::Arm64 => "--arm64",
        Architecture::X86_64 => "--x86-64",
    };
    // A folder of its own, so that another target folder of the user's does not move the result.
    let output = workspace.join("target/lambda").join(architecture.name());
    let mut command = cargo(workspace);
    command.args(["lambda", "build", "--release", processor, "--lambda-dir"]).arg(&output).args(bins(packages));
    // Standard output may be a program's: the build's goes where its messages go.
    succeeded(command.stdout(std::io::stderr()).status().await)?;
    Ok(packages.iter().map(|package| (package.clone(), output.join(package).join("bootstrap"))).collect())
}

fn succeeded(status: std::io::Result<ExitStatus>) -> Result<(), PackageError> {
    let status = status.map_err(PackageError::NoCargo)?;
    if status.success() { Ok(()) } else { Err(PackageError::Build(status)) }
}

impl Package {
    /// Reads a built function and names it by what it contains.
    ///
    /// # Errors
    ///
    /// [`PackageError::Unreadable`] where the executable is gone.
    pub fn of(binary: &Binary) -> Result<Self, PackageError> {
        let executable = std::fs::read(&binary.path)
            .map_err(|source| PackageError::Unreadable { path: binary.path.clone(), source })?;
        let mut digest = String::with_capacity(64);
        for byte in Sha256::digest(&executable) {
            digest.push_str(&format!("{byte:02x}"));
        }
        let key = format!("functions/{}/{digest}.zip", binary.package);
        Ok(Self { name: binary.package.clone(), key, executable })
    }

    /// The zip Lambda takes: one file named `bootstrap` that may be executed.
    ///
    /// `compress` pays where the zip crosses a network; on the machine itself it only takes time.
    pub fn zip(&self, compress: bool) -> Vec<u8> {
        let method = if compress { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let options = SimpleFileOptions::default().compression_method(method).unix_permissions(0o755);
        let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(self.executable.len() + 1024)));
        let written = zip.start_file("bootstrap", options).and_then(|()| Ok(zip.write_all(&self.executable)?));
        written.and_then(|()| zip.finish()).expect("writing to memory does not fail").into_inner()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn package_of(content: &[u8]) -> Package {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("split-job");
        std::fs::write(&path, content).unwrap();
        Package::of(&Binary { package: "split-job".into(), path }).unwrap()
    }

    #[test]
    fn a_package_is_one_executable_bootstrap() {
        for compress in [false, true] {
            let bytes = package_of(b"\x7fELF...").zip(compress);
            let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
            assert_eq!(zip.len(), 1);
            let mut file = zip.by_index(0).unwrap();
            assert_eq!((&*file.name().unwrap(), file.unix_mode().map(|mode| mode & 0o777)), ("bootstrap", Some(0o755)));
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            assert_eq!(content, b"\x7fELF...");
        }
    }

    #[test]
    fn the_same_executable_has_the_same_key_and_zip() {
        let (one, same, other) = (package_of(b"one"), package_of(b"one"), package_of(b"other"));
        assert_eq!((&one.key, one.zip(true)), (&same.key, same.zip(true)));
        assert_ne!(one.key, other.key);
        assert!(one.key.starts_with("functions/split-job/") && one.key.ends_with(".zip"), "{}", one.key);
    }
}
