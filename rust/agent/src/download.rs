//! Downloads properties files from a web server: plain HTTP, at most one redirect, with limits for time and length.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Maximum wait for the connection, and for each part of the response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response in bytes, headers included.
const MAX_RESPONSE_LENGTH: u64 = 1024 * 1024;

/// Returns the content of an `http://` URL, or an error text.
pub(crate) fn fetch(url: &str) -> Result<Vec<u8>, String> {
    match get(url)? {
        Response::Content(content) => Ok(content),
        Response::Redirect(location) => match get(&location)? {
            Response::Content(content) => Ok(content),
            Response::Redirect(_) => Err(format!("more than one redirect from {url}")),
        },
    }
}

enum Response {
    Content(Vec<u8>),
    Redirect(String),
}

fn get(url: &str) -> Result<Response, String> {
    let address = url
        .strip_prefix("http://")
        .ok_or_else(|| format!("not an http URL: {url}"))?;
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let server = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    // With HTTP/1.0, the end of the connection is the end of the response.
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let response =
        exchange(&server, request.as_bytes()).map_err(|error| format!("{url}: {error}"))?;
    parse(&response).ok_or_else(|| {
        let status_line = response
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        format!("{url}: {}", String::from_utf8_lossy(status_line))
    })
}

fn exchange(server: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let address = server
        .to_socket_addrs()?
        .next()
        .ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let mut response = Vec::new();
    stream
        .take(MAX_RESPONSE_LENGTH + 1)
        .read_to_end(&mut response)?;
    if response.len() as u64 > MAX_RESPONSE_LENGTH {
        return Err(std::io::Error::other(format!(
            "the response is longer than {MAX_RESPONSE_LENGTH} bytes"
        )));
    }
    Ok(response)
}

/// Returns the content or the redirect; `None` for any other response.
fn parse(response: &[u8]) -> Option<Response> {
    let head_length = response
        .windows(4)
        .position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&response[..head_length]).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?;
    match status {
        "200" => Some(Response::Content(response[head_length + 4..].to_vec())),
        "301" | "302" | "303" | "307" | "308" => lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("location"))
            .map(|(_, location)| Response::Redirect(location.trim().to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Starts a server that sends these responses, one per connection. Returns its address.
    fn serve(responses: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for response in responses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let length = stream.read(&mut request).unwrap();
                assert!(request[..length].starts_with(b"GET /dir/file.properties HTTP/1.0\r\n"));
                stream.write_all(response.as_bytes()).unwrap();
            }
        });
        address
    }

    fn fetch_from(responses: &[&str]) -> Result<String, String> {
        let later = serve(vec![responses.last().unwrap().to_string()]);
        let mut first = responses[..1].to_vec();
        let redirect =
            responses[0].replace("LATER", &format!("http://{later}/dir/file.properties"));
        first[0] = &redirect;
        let address = serve(first.into_iter().map(str::to_owned).collect());
        fetch(&format!("http://{address}/dir/file.properties"))
            .map(|content| String::from_utf8(content).unwrap())
    }

    const REDIRECT: &str = "HTTP/1.1 302 Found\r\nlocation: LATER\r\n\r\n";

    #[test]
    fn a_file_is_fetched_directly_or_after_one_redirect() {
        let content = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\naeron.mtu.length=4k\n";
        assert_eq!(fetch_from(&[content]).unwrap(), "aeron.mtu.length=4k\n");
        assert_eq!(
            fetch_from(&[REDIRECT, content]).unwrap(),
            "aeron.mtu.length=4k\n"
        );
    }

    #[test]
    fn a_response_that_is_too_long_is_refused_and_not_cut() {
        let content = |length: u64| {
            let head = "HTTP/1.0 200 OK\r\n\r\n";
            format!("{head}{}", "#".repeat(length as usize - head.len()))
        };
        assert!(fetch_from(&[&content(MAX_RESPONSE_LENGTH)]).is_ok());
        let error = fetch_from(&[&content(MAX_RESPONSE_LENGTH + 1)]).unwrap_err();
        assert!(
            error.ends_with("the response is longer than 1048576 bytes"),
            "{error}"
        );
    }

    #[test]
    fn the_error_for_any_other_response_names_the_cause() {
        for (responses, text) in [
            (
                vec!["HTTP/1.1 404 Not Found\r\n\r\n"],
                "HTTP/1.1 404 Not Found",
            ),
            (vec![REDIRECT, REDIRECT], "more than one redirect"),
            (vec!["nonsense"], "nonsense"),
            (vec![""], ""),
            (
                vec!["HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\n\r\n"],
                "not an http URL: https://elsewhere/",
            ),
        ] {
            let error = fetch_from(&responses).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
