//! The files of the page, as the build embedded them.

/// An embedded file.
#[derive(Debug)]
pub struct File {
    /// Its name, such as `app.js`.
    pub name: &'static str,
    pub plain: &'static [u8],
    pub gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

const PAGE: &str = "index.html";

impl File {
    /// The page itself.
    ///
    /// # Panics
    /// Never: the build embeds it.
    pub fn page() -> &'static Self {
        FILES.iter().find(|file| file.name == PAGE).expect("the page is embedded")
    }

    /// The asset at this path below `/assets/`: the folder of this version, and its name.
    pub fn asset(path: &str) -> Option<&'static Self> {
        let name = path.strip_prefix(VERSION)?.strip_prefix('/')?;
        FILES.iter().find(|file| file.name == name && file.name != PAGE)
    }

    pub fn content_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_has_a_type_and_lies_below_the_version() {
        for file in FILES {
            assert_ne!(file.content_type(), "application/octet-stream", "{}", file.name);
            let found = File::asset(&format!("{VERSION}/{}", file.name));
            assert_eq!(found.is_some(), file.name != PAGE, "{}", file.name);
            assert!(File::asset(&format!("0000000000000000/{}", file.name)).is_none(), "{}", file.name);
        }
    }

    #[test]
    fn the_page_names_its_assets_only_and_holds_no_code() {
        let page = std::str::from_utf8(File::page().plain).unwrap();
        for attribute in ["src=\"", "href=\""] {
            let paths = page.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap());
            for path in paths.filter(|path| *path != "#/") {
                let asset = path.strip_prefix("assets/").and_then(File::asset);
                assert!(asset.is_some(), "{path} is no asset");
            }
        }
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("{{"));
        assert_eq!(page.matches("<script").count(), page.matches("<script type=\"module\" src=").count());
    }

    #[test]
    fn no_script_makes_elements_from_text() {
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            let text = std::str::from_utf8(file.plain).unwrap();
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(forbidden), "{} has {forbidden}", file.name);
            }
        }
    }
}
