"""Signed requests, against the example in Amazon's documentation of Signature Version 4."""

from datetime import datetime, timezone

from soda_tta.protocols.aws_signature import AwsKey

KEY = AwsKey("us-east-1", "iam", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
THEN = datetime(2015, 8, 30, 12, 36, tzinfo=timezone.utc)
URL = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
HEADERS = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}


def test_the_published_example() -> None:
    sent = KEY.sign("GET", URL, HEADERS, b"", THEN)
    assert sent["X-Amz-Date"] == "20150830T123600Z"
    assert sent["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


def test_body_and_session_are_signed() -> None:
    temporary = AwsKey("us-east-1", "iam", "AKIDEXAMPLE", KEY.secret_key, "session")
    signatures = {
        KEY.sign("POST", URL, HEADERS, b"", THEN)["Authorization"],
        KEY.sign("POST", URL, HEADERS, b"x", THEN)["Authorization"],
        temporary.sign("POST", URL, HEADERS, b"x", THEN)["Authorization"],
    }
    assert len(signatures) == 3
    assert temporary.sign("POST", URL, {}, b"")["X-Amz-Security-Token"] == "session"


def test_the_secret_is_not_shown() -> None:
    assert "wJalr" not in repr(KEY)
