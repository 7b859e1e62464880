//! Options of a local stack.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_api::routes::{self, Route};
use serde_json::{Value, json};

use super::{StackError, launcher, target_dir};
use crate::package::{Architecture, Binary};
use crate::progress::Progress;

/// Options of the embedded local stack.
#[derive(Debug, Clone)]
pub struct StackOptions {
    /// The workspace root: the folder that holds `template.yaml`.
    pub workspace: PathBuf,
    /// The template to deploy; that of the workspace by default. For tests with another version.
    pub template: PathBuf,
    /// Folder for logs and `stack.json`; `target/rowmill` by default. Two stacks need two folders.
    pub state_dir: PathBuf,
    /// Builds the functions with cargo's `release` profile instead of `dev`.
    pub release: bool,
    /// Template parameters to override, as (name, value).
    pub parameters: Vec<(String, String)>,
    /// The output of progress to standard error.
    pub progress: Progress,
    /// Executables that replace functions, by the function's name (`process-items`). For tests and experiments with a
    /// function that crashes, hangs or loses state. The other functions are built as usual. Empty by default.
    pub binaries: BTreeMap<String, PathBuf>,
    /// The AWS endpoint of the functions, if not the emulator itself. For tests and experiments. `None` by default.
    pub functions_endpoint: Option<FunctionsEndpoint>,
}

/// Puts something between the functions and the emulator, for example a proxy that delays calls, refuses them or drops
/// replies. Everybody else uses the emulator directly, except for links that functions sign.
///
/// It is called before each start of an emulator with the emulator's base URL, and returns the base URL for the
/// functions. A running stack keeps the endpoint it was started with.
#[derive(Clone)]
pub struct FunctionsEndpoint(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl FunctionsEndpoint {
    /// `url_for` maps the base URL of an emulator to the AWS endpoint of its functions.
    pub fn new(url_for: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(url_for))
    }

    pub(super) fn url_for(&self, emulator: &str) -> String {
        (self.0)(emulator)
    }
}

impl fmt::Debug for FunctionsEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionsEndpoint").finish_non_exhaustive()
    }
}

impl StackOptions {
    /// The options for the workspace that contains the current directory.
    ///
    /// # Errors
    ///
    /// [`StackError::NoWorkspace`] outside a checkout.
    pub fn for_current_workspace() -> Result<Self, StackError> {
        let here = std::env::current_dir().map_err(|_| StackError::NoWorkspace)?;
        let is_workspace = |folder: &&Path| folder.join("template.yaml").is_file() && launcher(folder).is_file();
        let workspace = here.ancestors().find(is_workspace).ok_or(StackError::NoWorkspace)?;
        Ok(Self::for_workspace(workspace))
    }

    pub fn for_workspace(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            template: workspace.join("template.yaml"),
            state_dir: target_dir(workspace),
            release: false,
            parameters: Vec::new(),
            progress: Progress::Shown,
            binaries: BTreeMap::new(),
            functions_endpoint: None,
        }
    }

    /// The template's parameters: this machine's architecture, few workers for its cores, and the given ones.
    pub(super) fn template_parameters(&self) -> Result<BTreeMap<String, String>, StackError> {
        let architecture =
            Architecture::of_this_machine().ok_or(StackError::UnknownArchitecture(std::env::consts::ARCH))?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let mut parameters = BTreeMap::from([
            ("Architecture".to_owned(), architecture.name().to_owned()),
            ("ItemsMaximumConcurrency".to_owned(), cores.clamp(2, 4).to_string()),
            ("LanesMaximumConcurrency".to_owned(), cores.clamp(2, 4).to_string()),
            ("ItemsLowMaximumConcurrency".to_owned(), "2".to_owned()),
            // It listens on loopback only, and all its callers have one address.
            ("AllowOpenApi".to_owned(), "true".to_owned()),
            ("PostsPerMinute".to_owned(), "100000".to_owned()),
            ("PostsPerHour".to_owned(), "1000000".to_owned()),
            ("RouteLimits".to_owned(), route_limits()),
        ]);
        parameters.extend(self.parameters.iter().cloned());
        Ok(parameters)
    }

    /// The names of the functions to build, and the given executables for the others.
    pub(super) fn to_build(&self, functions: Vec<String>) -> Result<(Vec<String>, Vec<Binary>), StackError> {
        if let Some(unknown) = self.binaries.keys().find(|name| !functions.contains(name)) {
            return Err(StackError::UnknownFunction(unknown.clone()));
        }
        let given = |(package, path): (&String, &PathBuf)| Binary { package: package.clone(), path: path.clone() };
        let to_build = functions.into_iter().filter(|name| !self.binaries.contains_key(name)).collect();
        Ok((to_build, self.binaries.iter().map(given).collect()))
    }
}

/// Those of `PostsPerMinute` and `PostsPerHour` for every route that has others.
fn route_limits() -> String {
    let others = routes::all().filter(|route| route.limits.is_some());
    let limits = |route: &Route| (route.operation.id(), json!({ "minute": 100_000, "hour": 1_000_000 }));
    Value::Object(others.map(limits).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_a_given_executable_is_not_built() {
        let functions = || vec!["split-job".to_owned(), "sweep".to_owned()];
        let mut options = StackOptions::for_workspace(Path::new("/w"));
        assert_eq!(options.to_build(functions()).unwrap(), (functions(), vec![]));

        options.binaries.insert("sweep".to_owned(), "/b/lazy".into());
        let (to_build, given) = options.to_build(functions()).unwrap();
        assert_eq!(to_build, ["split-job"]);
        assert_eq!(given, [Binary { package: "sweep".into(), path: "/b/lazy".into() }]);

        options.binaries.insert("swep".to_owned(), "/b/lazy".into());
        assert_eq!(options.to_build(functions()).unwrap_err().to_string(), "the template has no function swep");
    }
}
