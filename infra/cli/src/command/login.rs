//! `rowmill login` and `rowmill logout`: the token that the other commands send to an API.

use std::process::ExitCode;

use super::connection::{URL_VARIABLE, from_environment};
use super::{CommandError, print};
use crate::login::{LoginRequest, Logins, log_in};

/// Logs in at the API's issuer with a browser. The other commands then send its token to this API
///
/// The token is stored in a file in the user's configuration folder that only the user can read, and renewed while the
/// issuer allows it. $ROWMILL_TOKEN has priority over it.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// URL of the API that the token is for [default: $ROWMILL_URL]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// URL of the issuer: the stack's parameter JwtIssuer
    #[arg(long, value_name = "URL", env = "ROWMILL_ISSUER")]
    pub issuer: String,
    /// The public client that the issuer knows this command as. It must allow a redirect to http://127.0.0.1/callback
    #[arg(long, value_name = "ID", env = "ROWMILL_CLIENT_ID")]
    pub client_id: String,
    /// A scope to ask for, beside openid; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// The audience to ask for, if the issuer needs it
    #[arg(long, value_name = "AUDIENCE")]
    pub audience: Option<String>,
    /// The port of the redirect on 127.0.0.1, for an issuer that accepts only one; 0 for any free one
    #[arg(long, value_name = "N", default_value = "0")]
    pub port: u16,
    /// Only print the address of the login page
    #[arg(long)]
    pub no_browser: bool,
}

/// Forgets the token for an API
#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// URL of the API [default: $ROWMILL_URL]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

pub async fn execute(args: LoginArgs) -> Result<ExitCode, CommandError> {
    let (api, logins) = (api(args.url)?, logins()?);
    let request = LoginRequest {
        issuer: args.issuer,
        client_id: args.client_id,
        scopes: args.scopes,
        audience: args.audience,
        port: args.port,
    };
    let login = log_in(&request, |page| {
        eprintln!("Log in at {page}");
        // Without a browser on this machine the person opens the address elsewhere.
        if !args.no_browser {
            let _ = open::that_detached(page.as_str());
        }
    })
    .await?;
    logins.keep(&api, login)?;
    print(&format!("Logged in for {api}\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub async fn execute_logout(args: LogoutArgs) -> Result<ExitCode, CommandError> {
    let (api, logins) = (api(args.url)?, logins()?);
    match logins.forget(&api)? {
        true => print(&format!("Logged out of {api}\n"))?,
        false => print(&format!("Not logged in for {api}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn api(url: Option<String>) -> Result<String, CommandError> {
    let no_api = || CommandError::Usage("no API: use --url, or set ROWMILL_URL".to_owned());
    url.or_else(|| from_environment(URL_VARIABLE)).ok_or_else(no_api)
}

fn logins() -> Result<Logins, CommandError> {
    let none =
        "this user has no configuration folder to keep a login in: set HOME or XDG_CONFIG_HOME, or ROWMILL_TOKEN";
    Logins::of_user().ok_or_else(|| CommandError::Usage(none.to_owned()))
}
