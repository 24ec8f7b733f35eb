// What the module hudi-aws would give Hudi's StorageBasedLockProvider: conditional requests, here to a server of the
// tests. The provider itself, its record, its times and its renewals are Hudi's.
package org.apache.hudi.aws.transaction.lock

import java.io.ByteArrayInputStream
import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.util.Properties

import org.apache.hudi.client.transaction.lock.StorageLockClient
import org.apache.hudi.client.transaction.lock.models.{LockGetResult, LockUpsertResult, StorageLockData, StorageLockFile}
import org.apache.hudi.common.util.{Option => HudiOption}
import org.apache.hudi.common.util.collection.Pair

class S3StorageLockClient(owner: String, address: String, properties: Properties) extends StorageLockClient {
  private val http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()
  private val target =
    URI.create(properties.getProperty("test.s3.endpoint") + "/" + address.replaceFirst("^s3a?://", ""))

  // the server of the tests asks who it is, and believes it
  private val signed =
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"

  private def send(request: HttpRequest.Builder) =
    http.send(request.header("Authorization", signed).build(), HttpResponse.BodyHandlers.ofByteArray())

  private def versionOf(answer: HttpResponse[Array[Byte]]) = answer.headers().firstValue("etag").get()

  override def readCurrentLockFile(): Pair[LockGetResult, HudiOption[StorageLockFile]] = {
    val answer = send(HttpRequest.newBuilder(target).GET())
    answer.statusCode() match {
      case 200 =>
        val found = StorageLockFile.createFromStream(new ByteArrayInputStream(answer.body()), versionOf(answer))
        Pair.of(LockGetResult.SUCCESS, HudiOption.of(found))
      case 404 => Pair.of(LockGetResult.NOT_EXISTS, HudiOption.empty())
      case _ => Pair.of(LockGetResult.UNKNOWN_ERROR, HudiOption.empty())
    }
  }

  override def tryUpsertLockFile(
      data: StorageLockData,
      seen: HudiOption[StorageLockFile]): Pair[LockUpsertResult, HudiOption[StorageLockFile]] = {
    val body = HttpRequest.BodyPublishers.ofByteArray(StorageLockFile.toByteArray(data))
    val request = HttpRequest.newBuilder(target).PUT(body)
    if (seen.isPresent) request.header("If-Match", seen.get().getVersionId)
    else request.header("If-None-Match", "*")
    val answer = send(request)
    answer.statusCode() match {
      case 200 => Pair.of(LockUpsertResult.SUCCESS, HudiOption.of(new StorageLockFile(data, versionOf(answer))))
      case 412 => Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, HudiOption.empty())
      case _ => Pair.of(LockUpsertResult.UNKNOWN_ERROR, HudiOption.empty())
    }
  }

  // since 1.1: what an audit of locks would read and write
  def readObject(path: String, looksFirst: Boolean): HudiOption[String] = HudiOption.empty()

  def writeObject(path: String, text: String): Boolean = false

  override def close(): Unit = ()
}
