/**
 * Connects published client libraries from npm to Skein's server and to one of the official SDK with the same features,
 * over each of their transports, and compares what a library reads from the two.
 */
import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import type { Server } from "../published/clients/library.ts"
import { libraries, type Library } from "../published/clients/libraries.ts"
import type { LibraryReading } from "../published/clients/main.ts"
import { compare, type Difference } from "../published/differences.ts"
import { emptyHome, missing, pinned } from "../published/installation.ts"
import { alignedTable } from "../published/table.ts"
import * as V1Features from "../fixtures/sdkV1Features.ts"
import { server as skeinServer } from "../fixtures/skeinFeatures.ts"
import { serverCommand } from "../matrix.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import * as V1 from "../servers/sdkV1.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

/** Libraries that negotiate a revision before 2025-06-18. */
const old = ["@modelcontextprotocol/sdk 1.0", "@modelcontextprotocol/sdk 1.8", "@modelcontextprotocol/sdk 1.12"]

/** The differences between the two servers that are not faults: of all libraries, or only of the named ones. */
const differences: ReadonlyArray<Difference & { readonly only?: ReadonlyArray<string> }> = [
  { at: /^handshake\//, reason: "the servers have other names, and Skein also offers logs and subscriptions" },
  {
    at: /^tools\/.*\/(additionalProperties|\$schema|properties|minimum|maximum|taskSupport|type)$/,
    reason: "the two libraries write the same type as different JSON Schemas"
  },
  {
    at: /^tools\/.*\/(title$|outputSchema\/)/,
    reason: "Skein sends only the members and content types of the negotiated revision"
  },
  {
    at: /^unknown tool\/|^wrong arguments\/|^unknown resource\/|^prompt without a required argument\//,
    reason: "Skein sends the error code of the negotiated revision, and its own message"
  },
  {
    at: /^(structured content|content types)\//,
    only: old,
    reason:
      "Skein sends only what the negotiated revision has, and SDK 1.0 and 1.8 cannot read the newer content of the SDK's server"
  },
  { at: /^resources\/.*\/mimeType$/, reason: "the SDK's server lists its resources without a media type" },
  {
    at: /^resources\/value\/(nextCursor$|(resources\/)?\d+\/(uri|name)$)/,
    only: ["@ai-sdk/mcp", "mcporter", "@openai/agents-core"],
    reason: "the library returns the first page, and the two servers list in different orders"
  },
  { at: /^progress\/value\/notes\/\d+\/message$/, reason: "2024-11-05 has no messages of progress" },
  { at: /^prompt\/value\/description$/, reason: "Skein repeats the description of the prompt" },
  {
    at: /\/(ttlMs|cacheScope|resultType)$|\/_meta\/io\.modelcontextprotocol\//,
    reason: "Skein negotiates 2026-07-28, the server of SDK v1 does not"
  }
]

const main = fileURLToPath(new URL("../published/clients/main.ts", import.meta.url))

/** Runs a library in a process of its own. */
const run = async (library: Library, servers: Readonly<Record<string, Server>>) => {
  const child = spawn(process.execPath, ["--conditions=@skein/source", main, library.name], {
    cwd: emptyHome(),
    stdio: ["pipe", "pipe", "pipe"]
  })
  child.stdin.end(JSON.stringify(servers))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (stdout === "") throw new Error(`${library.name} ended without a reading: ${stderr.slice(-2_000)}`)
  return JSON.parse(stdout) as Readonly<Record<string, LibraryReading>>
}

let skein: RunningServer
let official: HttpServer
let officialSse: HttpServer

const stdio = (server: "skein" | "sdk-v1"): Server => ({ transport: "stdio", ...serverCommand(server, "Features") })

const addresses = (transport: Server["transport"]): readonly [skein: Server, official: Server] => {
  if (transport === "stdio") return [stdio("skein"), stdio("sdk-v1")]
  if (transport === "http") return [skein.http, official.address]
  return [skein.sse, officialSse.address]
}

/** Sorts lists by name or URI, since the two servers list in different orders. */
const sorted = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (!Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, sorted(member)]))
  }
  const key = (item: unknown) => {
    const { function: tool, name, uri } = item as {
      readonly uri?: string
      readonly name?: string
      readonly function?: { readonly name: string }
    }
    return uri ?? name ?? tool?.name
  }
  const isNamed = value.every((item) => typeof item === "object" && item !== null && typeof key(item) === "string")
  return (isNamed ? value.toSorted((a, b) => key(a)! < key(b)! ? -1 : 1) : value).map(sorted)
}

const versionOf = ({ installed, name }: Library): string => pinned[installed ?? name]!.replace(/^npm:.+@/, "")

// The programs start slowly, and the machine may have two cores.
vi.setConfig({ maxConcurrency: 2 })

const rows = new Map<string, ReadonlyArray<string>>()

describe.skipIf(missing !== undefined).concurrent(missing ?? "published clients", () => {
  beforeAll(async () => {
    skein = await startServer(skeinServer)
    official = await V1.streamable(V1Features.make, "sessions")
    officialSse = await V1.sse(V1Features.make)
  })
  afterAll(async () => {
    await skein?.close()
    await official?.close()
    await officialSse?.close()
  })

  for (const library of libraries) {
    const { callsTools = true, name, transports } = library
    it(`${name} · reads Skein's server as it reads the SDK's`, { timeout: 120_000 }, async ({ expect }) => {
      const accepted = differences.filter(({ only }) => only?.includes(name) ?? true)
      const servers: Record<string, Server> = {}
      for (const transport of transports) {
        const [skein, official] = addresses(transport)
        servers[`skein ${transport}`] = skein
        servers[`official ${transport}`] = official
      }
      const readings = await run(library, servers)
      for (const transport of transports) {
        const found = compare(sorted(readings[`skein ${transport}`]), sorted(readings[`official ${transport}`]))
        expect(readings[`skein ${transport}`]).not.toHaveProperty("connect")
        const { call } = readings[`skein ${transport}`]!
        if (callsTools) expect(JSON.stringify(call)).toContain("Hello, Ada!")
        const unexplained = found.filter(({ at }) => !accepted.some((difference) => difference.at.test(at)))
        expect(unexplained.map(({ text }) => text)).toEqual([])
      }
      const requests = Object.keys(readings[`skein ${transports[0]}`]!)
      rows.set(name, [`\`${name}\``, versionOf(library), transports.join(", "), requests.join(", ")])
    })
  }
})

it.skipIf(missing !== undefined || process.argv.includes("-t"))("lists the published clients in a table", async () => {
  const header = ["Library", "Version", "Transports", "Compared"]
  const table = alignedTable(header, libraries.map(({ name }) => rows.get(name) ?? [name, "not read", "", ""]))
  const reasons = differences.map(({ only, reason }) =>
    `- ${only === undefined ? "" : `${only.join(", ")}: `}${reason}\n`
  )
  const text = `${table}\nAccepted differences:\n\n${reasons.join("")}`
  await expect(text).toMatchFileSnapshot("../published/clients.md")
})
