//! Functions in Python, which a test brings along.

use std::io::{Cursor, Write as _};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use super::LocalStack;

impl LocalStack {
    /// Creates a function of this name from the text of a Python file, whose `handler` is called.
    pub async fn create_python_function(&self, name: &str, source: &str) {
        let function = json!({
            "FunctionName": name,
            "Runtime": "python3.11",
            "Handler": "target.handler",
            "Role": format!("arn:aws:iam::000000000000:role/{name}"),
            "Code": {"ZipFile": BASE64_STANDARD.encode(zipped("target.py", source))},
        });
        let url = format!("{}/2015-03-31/functions", self.stack.endpoint());
        let response = self.http.post(url).json(&function).send().await.expect("the emulator answers");
        assert!(response.status().is_success(), "{}", response.text().await.unwrap_or_default());
    }
}

/// A zip archive with one file.
fn zipped(name: &str, text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, zip::write::SimpleFileOptions::default().unix_permissions(0o644)).expect("a file");
    zip.write_all(text.as_bytes()).expect("memory");
    zip.finish().expect("an archive").into_inner()
}
