/**
 * The certificates of the requests between nodes: each side of a connection presents one, and checks that of the other. They
 * are files, which are read again when they may have been renewed.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import type { PeerCertificate, Server, TLSSocket } from "node:tls"
import { Bounds } from "../../base/fixedBounds.ts"

/** The contents of the files, as PEM. */
interface Files {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

// The names that cert-manager and Kubernetes give them.
const names = { cert: "tls.crt", key: "tls.key", ca: "ca.crt" } as const

const parse = (pem: string): X509Certificate => new X509Certificate(pem)

const read = async (folder: string): Promise<Files> => {
  const [cert, key, ca] = await Promise.all(
    [names.cert, names.key, names.ca].map((name) => readFile(join(folder, name), "utf8"))
  )
  const files = { cert: cert!, key: key!, ca: ca! }
  // Node takes an empty file for a missing one, and would trust public authorities. A file may be empty while it is written.
  parse(files.ca)
  if (!parse(files.cert).checkPrivateKey(createPrivateKey(files.key))) {
    throw new Error(`${names.key} is not the key of ${names.cert}`)
  }
  process.getBuiltinModule("node:tls").createSecureContext(files)
  return files
}

export class NodeCertificates {
  readonly #folder: string
  readonly #name: string | undefined
  #files: Files
  #server: Server | undefined

  private constructor(folder: string, name: string | undefined, files: Files) {
    this.#folder = folder
    this.#name = name
    this.#files = files
  }

  /** Reads the files of a folder. Other nodes must have a certificate with the name, or any one of `ca.crt` without a name. */
  static load(folder: string, name: string | undefined): Effect.Effect<NodeCertificates, TransportError> {
    return Effect.map(
      Effect.tryPromise({
        try: () => read(folder),
        catch: (cause) =>
          new TransportError({
            reason: new OpenFailed({
              message: `Cannot use the certificates of nodeRequests in ${folder}: ${(cause as Error).message}`,
              cause
            })
          })
      }),
      (files) => new NodeCertificates(folder, name, files)
    )
  }

  /** Reads the files again, from time to time. Files that cannot be used leave the certificates as they are. */
  readonly watch: Effect.Effect<never> = Effect.gen({ self: this }, function*() {
    const { certificateInterval } = yield* Bounds
    const renewed = Effect.promise(() => this.#reload().then(() => undefined, ({ message }: Error) => message))
    const warn = (why: string) =>
      Effect.logWarning(`Certificates of nodeRequests in ${this.#folder} are not renewed: ${why}`)
    const renew = Effect.flatMap(renewed, (why) => why === undefined ? Effect.void : warn(why))
    return yield* Effect.forever(Effect.delay(renew, certificateInterval))
  })

  async #reload(): Promise<void> {
    const files = await read(this.#folder)
    const { ca, cert, key } = this.#files
    if (files.ca === ca && files.cert === cert && files.key === key) return
    this.#files = files
    this.#server?.setSecureContext(files)
  }

  /** The options of a connection to another node. */
  connectOptions() {
    return {
      ...this.#files,
      minVersion: "TLSv1.3",
      // Not the environment's.
      rejectUnauthorized: true,
      servername: this.#name ?? "",
      checkServerIdentity: (_: string, certificate: PeerCertificate) => this.#faultOf(certificate)
    } as const
  }

  /**
   * Whether the other side has presented the certificate of a node. A resumed session does not count: with TLS 1.3 Node takes one
   * that began without a certificate for authorized, and one that began with it may be of an authority that was removed.
   */
  isOfNode(socket: TLSSocket): boolean {
    if (!socket.authorized || socket.isSessionReused()) return false
    const certificate = socket.getPeerCertificate()
    return Object.keys(certificate).length > 0 && this.#faultOf(certificate) === undefined
  }

  #faultOf(certificate: PeerCertificate): Error | undefined {
    if (this.#name === undefined) return undefined
    return process.getBuiltinModule("node:tls").checkServerIdentity(this.#name, certificate)
  }

  /**
   * Makes the server that listens for other nodes. A connection without a certificate of a node is opened, and refused then:
   * with TLS 1.3 a client does not learn of an alert before it sends.
   */
  createServer(handshakeTimeout: number): Server {
    const server = process.getBuiltinModule("node:tls").createServer({
      ...this.#files,
      minVersion: "TLSv1.3",
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout
    })
    server.on("tlsClientError", (_, socket) => socket.destroy())
    return this.#server = server
  }
}
