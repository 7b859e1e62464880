//! Checks that an executable starts in Lambda's image, before it is uploaded: there it would fail at each start.

use object::elf::FileHeader64;
use object::read::elf::FileHeader;
use object::{Endianness, elf};

use super::Architecture;

/// glibc of `provided.al2023`.
const GLIBC: [u32; 2] = [2, 34];

#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("it is no executable of Linux: {0}")]
    NotElf(#[from] object::Error),
    #[error("it is not built for {0}")]
    OtherMachine(&'static str),
    #[error(
        "it needs {needed}, and the image has glibc {}.{}; cargo-lambda links against an older glibc unless a linker of \
         your own is configured for cargo", GLIBC[0], GLIBC[1]
    )]
    NewerGlibc { needed: String },
}

/// Checks the machine, and the versions of glibc's symbols.
pub(super) fn check(executable: &[u8], architecture: Architecture) -> Result<(), Unfit> {
    let header = FileHeader64::<Endianness>::parse(executable)?;
    let endian = header.endian()?;
    let machine = match architecture {
        Architecture::Arm64 => elf::EM_AARCH64,
        Architecture::X86_64 => elf::EM_X86_64,
    };
    if header.e_machine(endian) != machine {
        return Err(Unfit::OtherMachine(architecture.name()));
    }
    let sections = header.sections(endian, executable)?;
    // A static executable needs none.
    let Some((mut libraries, strings)) = sections.gnu_verneed(endian, executable)? else { return Ok(()) };
    let strings = sections.strings(endian, executable, strings)?;
    while let Some((_, mut versions)) = libraries.next()? {
        while let Some(version) = versions.next()? {
            // The loader accepts that a weak one is missing. The standard library asks for such ones.
            let is_weak = version.vna_flags.get(endian).contains(elf::VER_FLG_WEAK);
            let name = String::from_utf8_lossy(version.name(endian, strings)?);
            if !is_weak && is_newer(&name) {
                return Err(Unfit::NewerGlibc { needed: name.into_owned() });
            }
        }
    }
    Ok(())
}

/// True if the image's glibc does not have the version `GLIBC_2.39`, or one without a number such as
/// `GLIBC_ABI_DT_RELR`, which came with 2.36. Versions of other libraries are not compared.
fn is_newer(name: &str) -> bool {
    let Some(version) = name.strip_prefix("GLIBC_") else { return false };
    let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
    numbers.map_or(true, |numbers| numbers.as_slice() > GLIBC.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_version_is_newer_if_the_image_does_not_have_it() {
        for older in ["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34", "GCC_3.0", "GCC_4.2.0"] {
            assert!(!is_newer(older), "{older}");
        }
        for newer in ["GLIBC_2.35", "GLIBC_2.39", "GLIBC_3.0", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"] {
            assert!(is_newer(newer), "{newer}");
        }
    }

    /// The program of this test, with another version in the place of glibc's `2.`.
    #[cfg(target_os = "linux")]
    fn executable_that_needs(major: u8) -> Vec<u8> {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let places: Vec<usize> = memchr::memmem::find_iter(&bytes, "GLIBC_2.").collect();
        places.iter().for_each(|place| bytes[place + "GLIBC_".len()] = major);
        bytes
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_executable_for_another_machine_or_a_newer_glibc_is_refused() {
        let here = Architecture::of_this_machine().unwrap();
        let other = if here == Architecture::Arm64 { Architecture::X86_64 } else { Architecture::Arm64 };
        let (older, newer) = (executable_that_needs(b'1'), executable_that_needs(b'3'));
        check(&older, here).unwrap();
        assert!(matches!(check(&older, other), Err(Unfit::OtherMachine(_))));
        let error = check(&newer, here).unwrap_err().to_string();
        assert!(error.contains("needs GLIBC_3.") && error.contains("glibc 2.34"), "{error}");
        assert!(matches!(check(b"#!/bin/sh", here), Err(Unfit::NotElf(_))));
    }
}
