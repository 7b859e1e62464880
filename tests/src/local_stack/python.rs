//! Functions in Python, which a test brings along.

use std::io::{Cursor, Write as _};

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{FunctionCode, Runtime};

use super::LocalStack;

impl LocalStack {
    /// Creates a function of this name from the text of a Python file, whose `handler` is called.
    pub async fn create_python_function(&self, name: &str, source: &str) {
        let code = FunctionCode::builder().zip_file(Blob::new(zipped("target.py", source))).build();
        let function = self.lambda.create_function().function_name(name).code(code);
        let function = function.runtime(Runtime::Python311).handler("target.handler");
        // It calls nothing, so any role that exists will do.
        let created = function.role(self.role_arn_of("SweepFunctionName").await).send().await;
        created.expect("the emulator takes the function");
    }
}

/// A zip archive with one file.
fn zipped(name: &str, text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, zip::write::SimpleFileOptions::default().unix_permissions(0o644)).expect("a file");
    zip.write_all(text.as_bytes()).expect("memory");
    zip.finish().expect("an archive").into_inner()
}
