//! The SAM template: parses CloudFormation's short tags, lists the functions, sets their packages.

use std::path::{Path, PathBuf};

use rowmill_settings::other_settings::{Allowed, PARAMETER};
use saphyr::{LoadableYamlNode, Scalar, Tag, Yaml};
use serde_json::{Map, Value, json};

/// Resource type of a function.
const FUNCTION: &str = "AWS::Serverless::Function";

/// A template in CloudFormation's long form: `{"Ref": "Bucket"}` for `!Ref Bucket`.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    document: Value,
}

/// A function of the template and the package it is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub logical_id: String,
    /// The cargo package, which is also the binary's name.
    pub package: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file is missing or cannot be read.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the template is not YAML")]
    Syntax(#[from] saphyr::ScanError),
    /// It contains YAML that CloudFormation does not support.
    #[error("the template has {0}, which CloudFormation does not support")]
    Unsupported(String),
    /// A function does not say which binary it runs.
    #[error("the function {0} has no Metadata.BuildProperties.Binary")]
    NoBinary(String),
}

impl Template {
    /// Reads a template file.
    pub fn load(path: &Path) -> Result<Self, TemplateError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TemplateError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads a template's text.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let documents = Yaml::load_from_str(text)?;
        match documents.as_slice() {
            [document] => Ok(Self { document: long_form(document)? }),
            _ => Err(TemplateError::Unsupported(format!("{} documents", documents.len()))),
        }
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The template as JSON, for CloudFormation.
    pub fn to_json(&self) -> String {
        self.document.to_string()
    }

    /// Resources of one type, by name.
    pub fn resources_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let resources = self.document["Resources"].as_object();
        resources.into_iter().flatten().filter(move |(_, r)| r["Type"] == kind).map(|(id, r)| (id.as_str(), r))
    }

    /// True if the template has a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.document["Parameters"].get(name).is_some()
    }

    /// The values of a setting without a parameter of its own.
    pub fn other_setting(&self, name: &str) -> Option<Allowed> {
        let setting = self.document["Metadata"][PARAMETER].get(name)?;
        let is_text = setting["Type"] == "String";
        let [least, largest] = if is_text { ["MinLength", "MaxLength"] } else { ["MinValue", "MaxValue"] };
        Some(Allowed { least: setting[least].as_u64()?, largest: setting[largest].as_u64()?, is_text })
    }

    /// The names of all parameters and of the settings without one.
    pub fn settings(&self) -> impl Iterator<Item = &String> {
        let named = [&self.document["Parameters"], &self.document["Metadata"][PARAMETER]];
        named.into_iter().filter_map(Value::as_object).flat_map(Map::keys)
    }

    /// The default of a parameter, or of a setting without one.
    pub fn default_of(&self, name: &str) -> Option<String> {
        let of = |named: &'_ Value| named.get(name).map(|named| named["Default"].clone());
        match of(&self.document["Parameters"]).or_else(|| of(&self.document["Metadata"][PARAMETER]))? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The functions with the packages they are built from.
    pub fn functions(&self) -> Result<Vec<Function>, TemplateError> {
        self.resources_of(FUNCTION)
            .map(|(id, resource)| match resource["Metadata"]["BuildProperties"]["Binary"].as_str() {
                Some(package) => Ok(Function { logical_id: id.to_owned(), package: package.to_owned() }),
                None => Err(TemplateError::NoBinary(id.to_owned())),
            })
            .collect()
    }

    /// Sets the location of a function's package.
    ///
    /// # Panics
    ///
    /// If the template has no such resource: `logical_id` comes from [`functions`](Self::functions).
    pub fn set_code(&mut self, logical_id: &str, bucket: &str, key: &str) {
        let function = &mut self.document["Resources"][logical_id];
        assert!(function.is_object(), "the template has no function {logical_id}");
        function["Properties"]["CodeUri"] = json!({ "Bucket": bucket, "Key": key });
    }
}

fn long_form(node: &Yaml<'_>) -> Result<Value, TemplateError> {
    match node {
        Yaml::Value(scalar) => scalar_value(scalar),
        Yaml::Sequence(items) => items.iter().map(long_form).collect::<Result<Vec<_>, _>>().map(Value::Array),
        Yaml::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                map.insert(key_text(key)?, long_form(value)?);
            }
            Ok(Value::Object(map))
        }
        Yaml::Tagged(tag, value) if tag.handle == "!" => intrinsic(tag, long_form(value)?),
        other => Err(TemplateError::Unsupported(format!("{other:?}"))),
    }
}

fn scalar_value(scalar: &Scalar<'_>) -> Result<Value, TemplateError> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => json!(value),
        Scalar::Integer(value) => json!(value),
        Scalar::FloatingPoint(value) => json!(value.into_inner()),
        Scalar::String(value) => json!(value),
    })
}

fn key_text(key: &Yaml<'_>) -> Result<String, TemplateError> {
    match key {
        Yaml::Value(Scalar::String(text)) => Ok(text.to_string()),
        other => Err(TemplateError::Unsupported(format!("the key {other:?}"))),
    }
}

/// The long form of a short tag. `Ref` and `Condition` keep their names, all others become `Fn::` functions, and the
/// dotted text of `GetAtt` becomes a list.
fn intrinsic(tag: &Tag, argument: Value) -> Result<Value, TemplateError> {
    let name = tag.suffix.as_str();
    Ok(match (name, argument) {
        ("Ref" | "Condition", argument) => json!({ name: argument }),
        ("GetAtt", Value::String(path)) => match path.split_once('.') {
            Some((resource, attribute)) => json!({ "Fn::GetAtt": [resource, attribute] }),
            None => return Err(TemplateError::Unsupported(format!("!GetAtt {path}"))),
        },
        (_, argument) => json!({ format!("Fn::{name}"): argument }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tags_become_their_long_forms() {
        let template = Template::parse(
            "Resources:\n  A:\n    Type: T\n    Properties:\n      R: !Ref B\n      G: !GetAtt B.Arn\n      \
             S: !Sub ${B}/*\n      I: !If [C, !Ref B, !Ref AWS::NoValue]\n      N: !Not [!Condition C]\n      \
             V: \"2012-10-17\"\n      O: 010\n      Z: 3\n      T: true\n",
        )
        .unwrap();
        assert_eq!(
            template.document()["Resources"]["A"]["Properties"],
            json!({
                "R": { "Ref": "B" },
                "G": { "Fn::GetAtt": ["B", "Arn"] },
                "S": { "Fn::Sub": "${B}/*" },
                "I": { "Fn::If": ["C", { "Ref": "B" }, { "Ref": "AWS::NoValue" }] },
                "N": { "Fn::Not": [{ "Condition": "C" }] },
                "V": "2012-10-17", "O": 10, "Z": 3, "T": true,
            })
        );
    }

    #[test]
    fn functions_name_their_packages_and_take_their_code_from_a_bucket() {
        let mut template = Template::parse(
            "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Metadata:\n      BuildProperties:\n        \
             Binary: split-job\n    Properties:\n      CodeUri: functions/pipeline/split-job/\n  Q:\n    Type: AWS::SQS::Queue\n",
        )
        .unwrap();
        let functions = template.functions().unwrap();
        assert_eq!(functions, [Function { logical_id: "F".into(), package: "split-job".into() }]);

        template.set_code("F", "b", "k.zip");
        let code = &template.document()["Resources"]["F"]["Properties"]["CodeUri"];
        assert_eq!(*code, json!({ "Bucket": "b", "Key": "k.zip" }));
    }

    #[test]
    fn the_error_for_a_function_without_a_binary_names_it() {
        let template = Template::parse("Resources:\n  F:\n    Type: AWS::Serverless::Function\n").unwrap();
        assert_eq!(
            template.functions().unwrap_err().to_string(),
            "the function F has no Metadata.BuildProperties.Binary"
        );
    }
}
