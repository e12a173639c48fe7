"""Reads, writes, and uploads in parts with boto3, as an agent would; prints what it read."""
import hashlib
import io
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

endpoint, file = sys.argv[1:]
config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="eu-central-1", config=config)
key = "a folder/ü +~(1).txt"

s3.put_object(Bucket="bucket", Key=key, Body=b"a text")
print(s3.get_object(Bucket="bucket", Key=key)["Body"].read().decode())
print(s3.list_objects_v2(Bucket="bucket", Prefix="a b&c=d/é*")["Contents"][0]["Key"])
s3.upload_file(file, "bucket", "parts", Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
read = io.BytesIO()
s3.download_fileobj("bucket", "parts", read)
print(hashlib.sha256(read.getvalue()).hexdigest())
