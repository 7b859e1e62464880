//! Packages for this machine: scripts that start executables where they are. A whole one would be zipped, uploaded and
//! unpacked for each function, and has 100 MB.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rowmill_core::model::sha256::sha256_hex;
use zip::CompressionMethod;

use super::{Binary, Package, PackageError, zip_of};

/// The packages of a local stack.
pub struct LocalPackages {
    pub packages: Vec<Package>,
    folder: PathBuf,
    /// By the executable that was built.
    copies: BTreeMap<PathBuf, PathBuf>,
}

impl LocalPackages {
    /// Copies the executables into this folder: so a later build does not change what a running stack runs.
    pub fn of<'a>(binaries: impl IntoIterator<Item = &'a Binary>, folder: &Path) -> Result<Self, PackageError> {
        let mut all = Self { packages: Vec::new(), folder: folder.to_owned(), copies: BTreeMap::new() };
        for binary in binaries {
            let copy = match all.copies.get(&binary.path) {
                Some(copy) => copy.clone(),
                None => copy_into(folder, binary)?,
            };
            all.copies.insert(binary.path.clone(), copy.clone());
            // It names the function, for an executable with several.
            let script =
                format!("#!/bin/sh\nexec '{}' {}\n", copy.to_string_lossy().replace('\'', r"'\''"), binary.package);
            all.packages.push(Package {
                name: binary.package.clone(),
                zip: zip_of(script.as_bytes(), CompressionMethod::Stored),
            });
        }
        Ok(all)
    }

    /// Removes the copies of earlier packages. An error is harmless: they stay unused until the stack ends.
    pub fn remove_earlier(&self) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_used = |path: &PathBuf| self.copies.values().any(|copy| copy.file_name() == path.file_name());
        for path in entries.map(|entry| entry.path()).filter(|path| !is_used(path)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The copy of an executable, which is named by its content.
fn copy_into(folder: &Path, binary: &Binary) -> Result<PathBuf, PackageError> {
    let content = binary.read()?;
    let name = binary.path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}-{}", &sha256_hex(&content)[..16]);
    let uncopied = |source| PackageError::Uncopied { path: binary.path.clone(), folder: folder.to_owned(), source };
    let copied = || -> io::Result<PathBuf> {
        let copy = std::path::absolute(folder)?.join(name);
        if !copy.exists() {
            std::fs::create_dir_all(folder)?;
            // A process that dies leaves no half of a copy under its name.
            let part = copy.with_extension("part");
            std::fs::write(&part, &content)?;
            std::fs::set_permissions(&part, std::fs::metadata(&binary.path)?.permissions())?;
            std::fs::rename(part, &copy)?;
        }
        Ok(copy)
    };
    copied().map_err(uncopied)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::{Cursor, Read};
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    /// What the package prints.
    fn printed(package: &Package) -> String {
        let mut script = String::new();
        let mut zip = zip::ZipArchive::new(Cursor::new(&package.zip)).unwrap();
        zip.by_index(0).unwrap().read_to_string(&mut script).unwrap();
        loop {
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            // Another test may be starting a process, which has a copy of what was open for writing.
            if !String::from_utf8_lossy(&output.stderr).contains("busy") {
                return String::from_utf8(output.stdout).unwrap();
            }
        }
    }

    #[test]
    fn a_package_runs_what_was_built_also_after_the_next_build() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copies) = (folder.path().join("all"), folder.path().join("it's here"));
        let build = |text: &str| {
            std::fs::write(&path, format!("#!/bin/sh\necho {text} \"$1\"\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        };
        let binaries = ["split-job", "sweep"].map(|package| Binary { package: package.into(), path: path.clone() });
        let packages = || LocalPackages::of(&binaries, &copies).unwrap();
        let zips = |of: &LocalPackages| of.packages.iter().map(|package| package.zip.clone()).collect::<Vec<_>>();
        build("first");
        let first = packages();
        assert_eq!(zips(&packages()), zips(&first), "the same build makes the same packages");
        build("other");
        let second = packages();
        assert_ne!(zips(&second), zips(&first));
        let both = [&first, &second].map(|of| of.packages.iter().map(printed).collect::<String>());
        assert_eq!(both, ["first split-job\nfirst sweep\n", "other split-job\nother sweep\n"]);
        second.remove_earlier();
        assert_eq!((printed(&first.packages[0]).as_str(), std::fs::read_dir(&copies).unwrap().count()), ("", 1));
        assert_eq!(printed(&second.packages[1]), "other sweep\n");
    }
}
