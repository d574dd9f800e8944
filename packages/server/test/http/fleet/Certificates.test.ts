/** Certificates between the nodes of a fleet. */
import { describe, expect, it } from "@effect/vitest"
import type * as Fleet from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { logged } from "../../kit.ts"
import { bounded } from "../kit.ts"
import { call, until } from "../session/kit.ts"
import { type Authority, makeAuthority } from "./makeAuthority.ts"
import { type Node, open, start, textOf } from "./kit.ts"
import { MemoryFleet } from "./memoryFleet.ts"
import { outcomeOf } from "./nodeConnection.ts"

const keys = ["a key of the fleet of the tests of 48 characters"]

describe("the certificates of nodes", () => {
  const write = (folder: string, { cert, key }: { readonly cert: string; readonly key: string }, ca: string) => {
    writeFileSync(join(folder, "tls.crt"), cert)
    writeFileSync(join(folder, "tls.key"), key)
    writeFileSync(join(folder, "ca.crt"), ca)
  }

  const newFolder = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-nodes-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

  /** A folder with a certificate of an authority. */
  const folderOf = (authority: Authority, name = "shop.internal") =>
    Effect.tap(newFolder, (folder) => Effect.sync(() => write(folder, authority.certificate(name), authority.ca)))

  /** Starts a node for each folder. */
  const startNodes = (folders: ReadonlyArray<string>, more: Partial<Fleet.NodeRequests> = {}) =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet()
      const nodes: Array<Node> = []
      for (const tlsFolder of folders) {
        const nodeRequests = { tlsFolder, ...more }
        nodes.push(...yield* start(fleet, 1, { sessions: "home", nodeRequests }))
      }
      return { fleet, nodes }
    })

  /** Calls through the second node a session of the first one. */
  const callThrough = (nodes: ReadonlyArray<Node>) =>
    Effect.flatMap(open(nodes), (clients) => clients[1]!.post(call(1, "echo", { text: "hi" })))

  /** Greets the listener of a node as another one. */
  const connectTo = (fleet: MemoryFleet, { node }: Node, tls: ConnectionOptions) =>
    outcomeOf(fleet.addresses.get(node)!, { from: node === 1 ? 2 : 1, to: node, tls })

  /** The name of the authority of a node's certificate. */
  const issuerOf = (fleet: MemoryFleet, { node }: Node) =>
    Effect.callback<string>((resume) => {
      const socket = connectTls({ ...fleet.addresses.get(node)!, rejectUnauthorized: false }, () => {
        const { issuer } = socket.getPeerCertificate()
        socket.on("close", () => resume(Effect.succeed(String(issuer.CN)))).destroy()
      })
      socket.on("error", ({ message }) => resume(Effect.succeed(message)))
    })

  it.live("authenticate nodes without keys", () =>
    Effect.gen(function*() {
      const authority = makeAuthority("nodes")
      const folders = [yield* folderOf(authority), yield* folderOf(authority)]
      const { nodes } = yield* startNodes(folders)
      // The first one leaves a session of TLS, and the others need further connections.
      for (const length of [1, 5]) {
        const calls = yield* Effect.all(Array.from({ length }, () => callThrough(nodes)), { concurrency: length })
        expect(calls.map(({ json }) => textOf(json))).toEqual(Array.from(calls, () => "hi"))
      }
    }))

  it.live("are required beside keys, and keys beside them", () =>
    Effect.gen(function*() {
      const authority = makeAuthority("nodes")
      const folders = [yield* folderOf(authority), yield* folderOf(authority)]
      const { fleet, nodes } = yield* startNodes(folders, { keys })
      expect(textOf((yield* callThrough(nodes)).json)).toBe("hi")
      // It has a certificate, and no key.
      expect(yield* connectTo(fleet, nodes[0]!, authority.certificate("shop.internal"))).toBe("refused")
    }))

  it.live("are those of the authorities of the fleet: others are refused, and learn nothing", () =>
    Effect.gen(function*() {
      const authority = makeAuthority("nodes")
      const { fleet, nodes } = yield* startNodes([yield* folderOf(authority), yield* folderOf(authority)])
      const outcome = (options: ConnectionOptions) => connectTo(fleet, nodes[0]!, options)
      expect(yield* outcome(authority.certificate("shop.internal"))).toBe("accepted")
      expect(yield* outcome({})).toBe("refused")
      expect(yield* outcome(makeAuthority("nodes").certificate("shop.internal"))).toBe("refused")
      expect(yield* outcome({ ...authority.certificate("shop.internal"), maxVersion: "TLSv1.2" })).toBe("closed")
      // Without TLS.
      const [first, second] = nodes.map(({ node }) => node) as [number, number]
      expect(yield* outcomeOf(fleet.addresses.get(first)!, { from: second, to: first })).toBe("closed")
    }))

  it.live("are presented on each connection: a resumed session does not replace one", () =>
    Effect.gen(function*() {
      const authority = makeAuthority("nodes")
      const { fleet, nodes } = yield* startNodes([yield* folderOf(authority), yield* folderOf(authority)])
      for (const own of [{}, authority.certificate("shop.internal")]) {
        const session = yield* Effect.callback<Buffer>((resume) => {
          const socket = connectTls({ ...fleet.addresses.get(nodes[0]!.node)!, rejectUnauthorized: false, ...own })
          socket.once("session", (session) => {
            socket.destroy()
            resume(Effect.succeed(session))
          })
        })
        // Node takes a resumed session of TLS 1.3 without a certificate for an authorized one.
        expect(yield* connectTo(fleet, nodes[0]!, { session })).toBe("refused")
      }
    }))

  it.live("have the name of the nodes, if there is one", () =>
    Effect.gen(function*() {
      const authority = makeAuthority("cluster")
      const { fleet, nodes } = yield* startNodes(
        [yield* folderOf(authority), yield* folderOf(authority)],
        { tlsName: "shop.internal" }
      )
      expect(textOf((yield* callThrough(nodes)).json)).toBe("hi")
      expect(yield* connectTo(fleet, nodes[0]!, authority.certificate("shop.internal"))).toBe("accepted")
      expect(yield* connectTo(fleet, nodes[0]!, authority.certificate("other.internal"))).toBe("refused")
    }))

  it.live("are those of a node to send to: another one gets no request, and a warning says so", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const authority = makeAuthority("cluster")
        const folders = [yield* folderOf(authority, "other.internal"), yield* folderOf(authority)]
        const { nodes } = yield* startNodes(folders, { tlsName: "shop.internal" })
        expect((yield* callThrough(nodes)).status).toBe(503)
        expect(lines.join("\n")).toContain("The connection to node 1 cannot be opened: Hostname/IP does not match")
        // The other way round, the listener refuses it.
        expect((yield* callThrough(Array.from(nodes).reverse())).status).toBe(503)
        expect(lines.join("\n")).toContain("Node 2 refuses this node")
      })
    ))

  it.live("are read again: a node goes on after its authority was replaced", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const [old, next] = [makeAuthority("old"), makeAuthority("next")]
        const folders = [yield* folderOf(old), yield* folderOf(old)]
        const { fleet, nodes } = yield* bounded({ certificateInterval: 5 })(startNodes(folders))
        const outcome = (authority: Authority) => connectTo(fleet, nodes[0]!, authority.certificate("shop.internal"))
        /** Waits until a certificate of the authority has the outcome at each node. */
        const untilOutcome = (authority: Authority, expected: string): Effect.Effect<void> => {
          const connected = Effect.forEach(
            nodes,
            (node) => connectTo(fleet, node, authority.certificate("shop.internal"))
          )
          return Effect.flatMap(connected, (found) =>
            found.every((outcome) => outcome === expected)
              ? Effect.void
              : Effect.andThen(Effect.sleep(5), untilOutcome(authority, expected)))
        }
        /** Waits until each node has its certificate of the authority. */
        const untilIssuer = (name: string): Effect.Effect<void> =>
          Effect.flatMap(Effect.forEach(nodes, (node) => issuerOf(fleet, node)), (issuers) =>
            issuers.every((issuer) =>
                issuer === name
              )
              ? Effect.void
              : Effect.andThen(Effect.sleep(5), untilIssuer(name)))
        expect([yield* outcome(old), yield* outcome(next)]).toEqual(["accepted", "refused"])
        // A key that does not belong to its certificate, as while the files are being replaced.
        writeFileSync(join(folders[0]!, "tls.key"), next.certificate("shop.internal").key)
        yield* until(() => lines.some((line) => line.includes("are not renewed")))
        expect([yield* outcome(old), yield* outcome(next)]).toEqual(["accepted", "refused"])
        // First both authorities, then the certificates, then the next authority alone.
        const both = `${old.ca}${next.ca}`
        for (const folder of folders) write(folder, old.certificate("shop.internal"), both)
        yield* untilOutcome(next, "accepted")
        for (const folder of folders) write(folder, next.certificate("shop.internal"), both)
        yield* untilIssuer("next")
        expect(textOf((yield* callThrough(nodes)).json)).toBe("hi")
        for (const folder of folders) write(folder, next.certificate("shop.internal"), next.ca)
        yield* untilOutcome(old, "refused")
        expect(textOf((yield* callThrough(nodes)).json)).toBe("hi")
      })
    ))

  it.live("fail the start if they cannot be read, or if nothing protects the requests", () =>
    Effect.gen(function*() {
      const folder = yield* newFolder
      const missing = yield* Effect.exit(startNodes([folder]))
      expect(String(missing)).toContain(`Cannot use the certificates of nodeRequests in ${folder}: ENOENT`)
      // Node takes an empty file for a missing one, and trusts public authorities then.
      const authority = makeAuthority("nodes")
      for (const file of ["tls.crt", "tls.key", "ca.crt"]) {
        write(folder, authority.certificate("shop.internal"), authority.ca)
        writeFileSync(join(folder, file), "")
        expect(String(yield* Effect.exit(startNodes([folder])))).toContain("Cannot use the certificates")
      }
      const unprotected = yield* Effect.exit(start(new MemoryFleet(), 1, { nodeRequests: {} }))
      expect(String(unprotected)).toContain("nodeRequests needs keys or tlsFolder")
    }))
})
