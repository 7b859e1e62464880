//! Functions in Python, which a test brings along.

use std::io::{Cursor, Write as _};

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{FunctionCode, Runtime};

use super::LocalStack;

impl LocalStack {
    /// Creates a function of this name from the text of a Python file, whose `handler` is called.
    pub async fn create_python_function(&self, name: &str, source: &str) {
        self.create_function(name, (Runtime::Python311, "target.handler"), zipped("target.py", 0o644, source)).await;
    }

    /// Creates a function of this name whose process is this script. It must speak the Runtime API itself.
    pub async fn create_bootstrap_function(&self, name: &str, script: &str) {
        self.create_function(name, (Runtime::Providedal2023, "bootstrap"), zipped("bootstrap", 0o755, script)).await;
    }

    async fn create_function(&self, name: &str, (runtime, handler): (Runtime, &str), zip: Vec<u8>) {
        let code = FunctionCode::builder().zip_file(Blob::new(zip)).build();
        let function = self.lambda.create_function().function_name(name).code(code);
        let function = function.runtime(runtime).handler(handler);
        // It calls nothing, so any role that exists will do.
        let created = function.role(self.role_arn_of("SweepFunctionName").await).send().await;
        created.expect("the emulator takes the function");
    }

    /// Calls a function; its answer.
    ///
    /// # Errors
    /// With its answer, if it failed.
    pub async fn invoke(&self, name: &str) -> Result<String, String> {
        let called = self.lambda.invoke().function_name(name).payload(Blob::new("{}")).send().await;
        let called = called.expect("the function is called");
        let answer = String::from_utf8_lossy(called.payload.unwrap_or_else(|| Blob::new("")).as_ref()).into_owned();
        if called.function_error.is_none() { Ok(answer) } else { Err(answer) }
    }
}

/// A zip archive with one file.
fn zipped(name: &str, permissions: u32, text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, zip::write::SimpleFileOptions::default().unix_permissions(permissions)).expect("a file");
    zip.write_all(text.as_bytes()).expect("memory");
    zip.finish().expect("an archive").into_inner()
}
