//! Settings: each has its default, its environment variable and its template parameter in one place.
//!
//! A group of settings is a struct made by [`settings!`](crate::settings!). Each of its fields is one of these:
//!
//! ```ignore
//! rowmill_settings::settings! {
//!     /// The limits of a sweep.
//!     #[derive(Clone, Copy, Debug)]
//!     pub struct SweepLimits {
//!         /// A group inside the group.
//!         pub recovery: Recovery;
//!         /// A setting: its default, and the template parameter that overrides it.
//!         pub limit: Duration = Duration::from_secs(90), "ProcessTimeoutSeconds";
//!         /// A setting that few change: it has no parameter of its own, `OtherSettings` sets it by its name. These are its
//!         /// least and its largest value, in the unit of its name; those of a text count its bytes.
//!         pub backoff_max: Duration = Duration::from_secs(4 * 60 * 60), "SweepBackoffMaxSeconds" in 1..=86_400;
//!         /// A constant. Tests may still use another value.
//!         pub jobs_max: usize = 100;
//!     }
//! }
//! ```
//!
//! The environment variable follows from the parameter: `ProcessTimeoutSeconds` is passed as
//! `ROWMILL_PROCESS_TIMEOUT_SECONDS`. So does the unit of a [`Duration`](std::time::Duration): the parameter ends
//! with `Seconds`, `Hours` or `Days`.
//!
//! Groups that several functions read are here. A group that one function reads is in the `limits.rs` of that function.
//! Its [declaration] names the groups that it reads, from which `infra/template` writes its environment, and its
//! `start.rs` reads each of them once.

mod buckets;
pub mod declaration;
mod files;
mod job_types;
mod jobs;
mod live;
pub mod other_settings;
mod owner_priorities;
mod quotas;
mod resources;
mod targets;
pub mod time_bounds;
mod times;
mod value;

use rowmill_core::model::job_type_limits::JobTypesError;
use rowmill_core::model::owner_priorities::OwnerPrioritiesError;
use rowmill_core::wiring::Missing;

use crate::declaration::Group;
use crate::other_settings::{Allowed, OtherSettings, OtherSettingsError};
use crate::time_bounds::TooShort;
pub use buckets::{AllowedBuckets, OtherBuckets};
pub use files::{FileLimits, Links};
pub use job_types::JobTypeSettings;
pub use jobs::{DEADLINE_MAX, Deadlines, JobRetention, RETRY_AFTER_MAX, Recovery, StopGrace};
pub use live::ConnectionLimits;
pub use owner_priorities::OwnerPrioritySettings;
pub use quotas::RouteLimitSettings;
pub use resources::*;
pub use targets::{BucketSettings, FetchSettings, JobTargets};
pub use times::{CompleteTime, ProcessTime, SplitTime, TimeLimits, VISIBILITY_TIMEOUTS, check_times};
pub use value::Value;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A setting is something else than it must be.
    #[error("{name} is `{value}`; it must be {expected}")]
    Invalid { name: String, value: String, expected: &'static str },
    #[error(transparent)]
    JobTypes(#[from] JobTypesError),
    #[error(transparent)]
    OwnerPriorities(#[from] OwnerPrioritiesError),
    #[error(transparent)]
    Times(#[from] TooShort),
    #[error(transparent)]
    OtherSettings(#[from] OtherSettingsError),
    /// A start reads what the template does not pass to the function.
    #[error("{function} reads {what}, which its declaration does not name")]
    Undeclared { function: &'static str, what: &'static str },
    /// A declaration names what the start does not read.
    #[error("the declaration of {function} names {what}, which it does not read")]
    Unread { function: &'static str, what: &'static str },
}

/// Settings that belong together, read at once. Made by [`settings!`](crate::settings!).
pub trait SettingsGroup: Sized {
    /// The name of the type.
    const NAME: &'static str;

    /// The group as data, for declarations.
    const GROUP: Group = Group { name: Self::NAME, settings: Self::settings };

    fn defaults() -> Self;

    /// The group as these parameters set it. One that is not set or empty leaves the default.
    ///
    /// # Errors
    /// [`StartError::Invalid`] if a parameter does not hold a value of its setting's type, [`StartError::OtherSettings`].
    fn read(parameters: &dyn Fn(&str) -> Option<String>) -> Result<Self, StartError>;

    /// The group as the environment sets it.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    fn from_env() -> Result<Self, StartError> {
        Self::read(&environment)
    }

    /// All settings of the group, including nested groups.
    fn settings() -> Vec<Setting>;
}

/// A setting as data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setting {
    pub parameter: &'static str,
    /// The default, as the template writes it.
    pub default: String,
    pub group: &'static str,
    /// Its values if it is one of [`OtherSettings`]. Those of a parameter stand in the template.
    pub other: Option<Allowed>,
}

impl Setting {
    /// The setting of a group. [`settings!`](crate::settings!) calls this.
    pub fn new<T: Value>(group: &'static str, parameter: &'static str, default: &T, other: Option<(u64, u64)>) -> Self {
        Self { parameter, default: default.text(parameter), group, other: other.map(allowed::<T>) }
    }

    /// The parameter that sets it.
    pub fn set_by(&self) -> &'static str {
        if self.other.is_some() { other_settings::PARAMETER } else { self.parameter }
    }

    /// The environment variable of that parameter.
    pub fn variable(&self) -> String {
        variable(self.set_by())
    }

    /// Its value in this environment, as text.
    ///
    /// # Errors
    /// [`StartError::OtherSettings`].
    pub fn value(&self) -> Result<String, StartError> {
        Ok(given(&environment, self.parameter, self.other)?.unwrap_or_else(|| self.default.clone()))
    }
}

const fn allowed<T: Value>((least, largest): (u64, u64)) -> Allowed {
    Allowed { least, largest, is_text: T::IS_TEXT }
}

/// The environment variable of a template parameter: `ROWMILL_JOB_TYPES` of `JobTypes`.
pub fn variable(parameter: &str) -> String {
    let mut variable = String::from("ROWMILL");
    for letter in parameter.chars() {
        if letter.is_ascii_uppercase() {
            variable.push('_');
        }
        variable.push(letter.to_ascii_uppercase());
    }
    variable
}

/// The value of a parameter in the environment.
fn environment(parameter: &str) -> Option<String> {
    std::env::var(variable(parameter)).ok()
}

/// The value of the setting with this name. [`settings!`](crate::settings!) calls this.
pub fn read<T: Value>(
    parameters: &dyn Fn(&str) -> Option<String>,
    name: &str,
    default: T,
    other: Option<(u64, u64)>,
) -> Result<T, StartError> {
    parse(name, given(parameters, name, other.map(allowed::<T>))?, default)
}

/// The value of a setting that is not left to its default.
fn given(
    parameters: &dyn Fn(&str) -> Option<String>,
    name: &str,
    other: Option<Allowed>,
) -> Result<Option<String>, StartError> {
    let value = match other {
        None => parameters(name),
        Some(allowed) => match parameters(other_settings::PARAMETER) {
            Some(json) => OtherSettings::parse(&json)?.get(name, allowed)?,
            // Stacks of 0.2.0 have a parameter for it. While one is updated, a function may have its new code already.
            None => parameters(name),
        },
    };
    Ok(value.filter(|value| !value.trim().is_empty()))
}

fn parse<T: Value>(parameter: &str, value: Option<String>, default: T) -> Result<T, StartError> {
    let Some(value) = value else { return Ok(default) };
    let invalid = || StartError::Invalid { name: parameter.to_owned(), value: value.clone(), expected: T::EXPECTED };
    T::parse(value.trim(), parameter).ok_or_else(invalid)
}

/// Makes a [`SettingsGroup`]: see [the crate](crate). `impl Type { … }` makes one of a struct of another crate.
#[macro_export]
macro_rules! settings {
    (@default $type:ty) => { <$type as $crate::SettingsGroup>::defaults() };
    (@default $type:ty, $default:expr $(, $parameter:literal $($other:expr)?)?) => { $default };
    (@other) => { None };
    (@other $other:expr) => { Some((*$other.start(), *$other.end())) };
    (@read $from:ident, $type:ty) => { <$type as $crate::SettingsGroup>::read($from)? };
    (@read $from:ident, $type:ty, $default:expr, $parameter:literal $($other:expr)?) => {
        $crate::read::<$type>($from, $parameter, $default, $crate::settings!(@other $($other)?))?
    };
    (@read $from:ident, $type:ty, $default:expr) => { $default };
    (@list $list:ident, $type:ty) => { $list.extend(<$type as $crate::SettingsGroup>::settings()) };
    (@list $list:ident, $type:ty, $default:expr, $parameter:literal $($other:expr)?) => {{
        let default: $type = $default;
        $list.push($crate::Setting::new(Self::NAME, $parameter, &default, $crate::settings!(@other $($other)?)));
    }};
    (@list $list:ident, $type:ty, $default:expr) => {};
    (
        $(#[$attribute:meta])*
        pub struct $group:ident {
            $(
                $(#[$field_attribute:meta])*
                pub $field:ident: $type:ty $(= $default:expr $(, $parameter:literal $(in $other:expr)?)?)?;
            )+
        }
    ) => {
        $(#[$attribute])*
        pub struct $group {
            $($(#[$field_attribute])* pub $field: $type,)+
        }

        impl Default for $group {
            fn default() -> Self {
                <Self as $crate::SettingsGroup>::defaults()
            }
        }

        $crate::settings! { impl $group { $($field: $type $(= $default $(, $parameter $(in $other)?)?)?;)+ } }
    };
    (impl $group:ident { $($field:ident: $type:ty $(= $default:expr $(, $parameter:literal $(in $other:expr)?)?)?;)+ }) => {
        impl $crate::SettingsGroup for $group {
            const NAME: &'static str = stringify!($group);

            fn defaults() -> Self {
                Self { $($field: $crate::settings!(@default $type $(, $default $(, $parameter $($other)?)?)?),)+ }
            }

            fn read(from: &dyn Fn(&str) -> Option<String>) -> Result<Self, $crate::StartError> {
                Ok(Self { $($field: $crate::settings!(@read from, $type $(, $default $(, $parameter $($other)?)?)?),)+ })
            }

            fn settings() -> Vec<$crate::Setting> {
                let mut list = Vec::new();
                $($crate::settings!(@list list, $type $(, $default $(, $parameter $($other)?)?)?);)+
                list
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed<T: Value>(parameter: &str, value: Option<&str>, default: T) -> Result<T, StartError> {
        parse(parameter, value.map(str::to_owned), default)
    }

    crate::settings! {
        /// A group with a setting, a constant and a nested group.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Example {
            /// A setting.
            pub delay: Duration = Duration::from_secs(7200), "ExampleDelayHours";
            /// A setting without a parameter of its own.
            pub chunks: u32 = 5, "ExampleChunks" in 1..=10;
            /// A constant.
            pub tries: u32 = 3;
            /// A group.
            pub recovery: Recovery;
        }
    }

    #[test]
    fn an_unset_setting_has_its_default() {
        assert_eq!(parsed("Example", None, 7_u64).unwrap(), 7);
        assert_eq!(read(&|_| Some(" ".to_owned()), "Example", 7_u64, None).unwrap(), 7);
        assert_eq!(parsed("Example", Some(" 12 "), 7_u64).unwrap(), 12);
    }

    #[test]
    fn a_duration_has_the_unit_that_its_parameter_names() {
        let day = Duration::from_secs(86_400);
        assert_eq!(parsed("ExampleSeconds", Some("90"), day).unwrap(), Duration::from_secs(90));
        assert_eq!(parsed("ExampleHours", Some("2"), day).unwrap(), Duration::from_secs(7200));
        assert_eq!(parsed("ExampleDays", Some("2"), day).unwrap(), 2 * day);
        assert!(parsed("ExampleDays", Some(&u64::MAX.to_string()), day).is_err());
    }

    #[test]
    fn the_error_for_an_invalid_setting_names_its_value_and_the_expected_one() {
        let error = parsed("ChunkMaxItems", Some("many"), 500_u32).unwrap_err();
        assert_eq!(error.to_string(), "ChunkMaxItems is `many`; it must be a whole number from 0 to 4294967295");
        assert!(parsed("Example", Some("-1"), 7_u64).is_err());
    }

    #[test]
    fn the_error_for_a_missing_resource_says_what_is_expected() {
        let missing = Resource { variable: "ROWMILL_SURELY_NOT_SET", ..JOBS_TABLE };
        let error = missing.read().unwrap_err();
        assert_eq!(error.to_string(), "ROWMILL_SURELY_NOT_SET is not set; it must be the name of the jobs table");
    }

    #[test]
    fn a_group_lists_its_settings_including_nested_groups_but_no_constants() {
        let listed: Vec<_> = Example::settings().into_iter().map(|setting| (setting.variable(), setting)).collect();
        let of = |group, parameter, default: &str, other| Setting { parameter, default: default.into(), group, other };
        let other = |least, largest| Some(Allowed { least, largest, is_text: false });
        let expected = [
            ("ROWMILL_EXAMPLE_DELAY_HOURS".to_owned(), of("Example", "ExampleDelayHours", "2", None)),
            ("ROWMILL_OTHER_SETTINGS".to_owned(), of("Example", "ExampleChunks", "5", other(1, 10))),
            ("ROWMILL_OTHER_SETTINGS".to_owned(), of("Recovery", "StaleSeconds", "900", other(5, 86_400))),
        ];
        assert_eq!(listed, expected);
        assert_eq!(Example::from_env().unwrap(), Example::default(), "nothing is set");
    }
}
