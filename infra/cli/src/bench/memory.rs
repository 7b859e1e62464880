//! Memory sizes of the functions, which determine the price of their time.

use std::collections::HashMap;

use serde_json::Value;

use crate::template::{Template, TemplateError};

/// Memory of a function without a setting in the template: Lambda's default.
const DEFAULT_MEGABYTES: u32 = 128;

/// Memory sizes by function, from the template's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemorySizes(HashMap<String, u32>);

impl MemorySizes {
    /// Reads the sizes from a template.
    pub fn of_template(template: &Template) -> Result<Self, TemplateError> {
        let document = template.document();
        let size = |logical_id: &str| {
            let size = &document["Resources"][logical_id]["Properties"]["MemorySize"];
            let global = &document["Globals"]["Function"]["MemorySize"];
            number(document, size).or_else(|| number(document, global))
        };
        let functions = template.functions()?.into_iter();
        Ok(Self(functions.filter_map(|f| Some((f.package, size(&f.logical_id)?))).collect()))
    }

    /// Megabytes of a function.
    pub fn of(&self, function: &str) -> u32 {
        self.0.get(function).copied().unwrap_or(DEFAULT_MEGABYTES)
    }
}

/// A number, or the default of the referenced parameter.
fn number(document: &Value, value: &Value) -> Option<u32> {
    let value = match value["Ref"].as_str() {
        Some(parameter) => &document["Parameters"][parameter]["Default"],
        None => value,
    };
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_through_the_parameters() {
        let function = |name: &str, memory: &str| {
            format!(
                "  {name}:\n    Type: AWS::Serverless::Function\n    Metadata:\n      BuildProperties: {{ Binary: {name} }}\n\
                 \x20   Properties: {{ {memory} }}\n"
            )
        };
        let text = format!(
            "Parameters:\n  Big: {{ Type: Number, Default: 1024 }}\nResources:\n{}{}{}",
            function("split", "MemorySize: !Ref Big"),
            function("status", "MemorySize: 256"),
            function("other", "Timeout: 3"),
        );
        let sizes = MemorySizes::of_template(&Template::parse(&text).unwrap()).unwrap();
        assert_eq!((sizes.of("split"), sizes.of("status"), sizes.of("other")), (1024, 256, 128));
    }
}
