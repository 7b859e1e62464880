//! Versions of the clients that work on tasks.

use std::fmt;
use std::str::FromStr;

/// A version as `1.4.0`, or `1.4.0-rc.1`, which comes before it. Two pre-releases of one version are not told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClientVersion {
    numbers: [u32; 3],
    is_release: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a version has three numbers, such as 1.4.0")]
pub struct InvalidVersion;

impl ClientVersion {
    /// The version of a client that names itself `NAME/VERSION`.
    pub fn of_client(client: &str) -> Option<Self> {
        client.rsplit_once('/').and_then(|(_, version)| version.parse().ok())
    }
}

impl FromStr for ClientVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, _build) = text.split_once('+').unwrap_or((text, ""));
        let (release, pre) = text.split_once('-').map_or((text, None), |(release, pre)| (release, Some(pre)));
        if pre.is_some_and(str::is_empty) {
            return Err(InvalidVersion);
        }
        let number = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().map_err(|_| InvalidVersion),
            false => Err(InvalidVersion),
        };
        let parts: Vec<u32> = release.split('.').map(number).collect::<Result<_, _>>()?;
        let numbers = parts.try_into().map_err(|_| InvalidVersion)?;
        Ok(Self { numbers, is_release: pre.is_none() })
    }
}

/// The three numbers.
impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers_and_a_pre_release_comes_first() {
        let version = |text: &str| text.parse::<ClientVersion>().unwrap();
        let ordered = ["0.9.10", "0.10.0-rc.1", "0.10.0", "1.4.0-beta", "1.4.0+build.7", "1.10.2", "10.0.0"];
        assert!(ordered.map(version).is_sorted_by(|before, after| before < after));
        assert_eq!(version("1.4.0+a"), version("1.4.0"));
    }

    #[test]
    fn a_client_names_its_version_behind_its_name() {
        assert_eq!(ClientVersion::of_client("a/b/1.4.0"), "1.4.0".parse().ok());
        for none in [
            "",
            "rowmill",
            "1.4.0",
            "rowmill/",
            "rowmill/1.4",
            "rowmill/1.4.x",
            "rowmill/1.x.4.0",
            "rowmill/+1.4.0",
            "rowmill/1.4.0-",
            "r/1.4.0.1",
        ] {
            assert_eq!(ClientVersion::of_client(none), None, "{none}");
        }
        assert_eq!(ClientVersion::of_client("rowmill/99999999999.0.0"), None);
    }
}
