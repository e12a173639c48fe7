import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from calls import main

# A body with its checksum behind it would not be the file.
config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")


def s3(url):
    secrets = {"aws_access_key_id": "unused", "aws_secret_access_key": "unused"}
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", config=config, **secrets)


def call(url, method, body):
    try:
        return 200, s3(url).get_object(Bucket="bucket", Key="key")["Body"].read().decode()
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], str(error)


def stream(url):
    body = s3(url).get_object(Bucket="bucket", Key="key")["Body"]
    # Less than the chunk would wait for the rest of it.
    while piece := body.read(15 if "/down/" not in url else 1 << 20):
        yield piece


def up(url, file):
    with open(file, "rb") as body:
        return s3(url).put_object(Bucket="bucket", Key="key", Body=body)["ETag"]


main(call, stream, up)
