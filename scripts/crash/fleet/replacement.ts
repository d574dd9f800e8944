/**
 * Nodes that join, and a rolling replacement of all nodes, while Skein's client and both official ones call a tool that asks
 * for a form: no call fails, no stream ends when nodes join, and all clients are notified of a change afterwards.
 */
import { setTimeout as sleep } from "node:timers/promises"
import * as Skein from "../../../interop/skeinClient.ts"
import * as SdkV1 from "../../../interop/sdkV1Client.ts"
import * as SdkV2 from "../../../interop/sdkV2Client.ts"
import type { Received, TestClient } from "../../../interop/testClient.ts"
import { eventually, Nodes } from "./nodes.ts"

const revision = "2025-11-25"

/** Milliseconds between two calls of a client, at most. */
const pace = 200

interface Client extends TestClient {
  readonly name: string
  readonly received: Received
}

/** Connects a client that enters its name into forms, and subscribes to a resource. */
const connect = async (url: string, index: number): Promise<Client> => {
  const name = `client${index}`
  const server = { transport: "http", url } as const
  const resource = uriOf(name)
  if (index % 3 === 0) {
    const client = await Skein.connectInteractive(server, { name, revisions: [revision] })
    client.watch({ uris: [resource] })
    return { ...client, name }
  }
  const client = await (index % 3 === 1 ? SdkV1 : SdkV2).connectInteractive(server, { user: name, revision })
  await client.watch({ resource })
  return { ...client, name, close: () => client.terminate().then(() => client.close()) }
}

const uriOf = (name: string): string => `walk://${name}/0`

/** Runs, prints a line about each part, and returns the problems. */
export const replacement = async (
  { clients: count }: { readonly clients: number },
  print: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  const nodes = await Nodes.open(3)
  try {
    const url = `http://127.0.0.1:${nodes.port}/mcp`
    const clients = await Promise.all(Array.from({ length: count }, (_, index) => connect(url, index)))
    let calls = 0
    let failed = 0
    let isOver = false
    const answered = new Set<string>()
    const call = async (client: Client, key: string): Promise<void> => {
      calls++
      const text = await client.call("ask", { key }).then(
        ({ content: [block] }) => String(block?.["text"]),
        (error: unknown) => String(error)
      )
      answered.add(key)
      if (text === `${key} ${client.name}`) return
      failed++
      problems.push(`call ${key}: ${text}`)
    }
    const calling = Promise.all(clients.map(async (client, index) => {
      for (let n = 1; !isOver; n++) {
        await call(client, `${client.name}.${n}`)
        await sleep(pace * ((index % 10) + 1) / 10)
      }
    }))
    const part = async (what: string, run: () => Promise<unknown>): Promise<void> => {
      const before = { calls, failed, closed: nodes.closedStreams }
      await run()
      const closed = nodes.closedStreams - before.closed
      print(`  ${what}: ${calls - before.calls} calls, ${failed - before.failed} failed, ${closed} streams ended`)
    }
    const hear = async (what: string): Promise<void> => {
      for (const { received } of clients) received.updated.length = 0
      for (const { name } of clients) await clients[0]!.call("touch", { uri: uriOf(name) })
      const deaf = (): ReadonlyArray<string> =>
        clients.filter(({ name, received }) => !received.updated.includes(uriOf(name))).map(({ name }) => name)
      await eventually(() => deaf().length === 0 ? undefined : "waits")
      if (deaf().length > 0) problems.push(`${what}: ${deaf().join(", ")} not notified of a change`)
    }

    await hear("at the start")
    await part("3 nodes join 3", async () => {
      const before = nodes.closedStreams
      await Promise.all([nodes.join(), nodes.join(), nodes.join()])
      await hear("after 3 nodes have joined")
      const closed = nodes.closedStreams - before
      if (closed > 0) problems.push(`${closed} streams have ended when nodes joined`)
    })
    await part("3 nodes leave", async () => {
      for (const node of [...nodes.running].slice(0, 3)) await nodes.end(node, "SIGTERM")
    })
    await part("3 nodes are replaced", () => nodes.replaceAll())
    await hear("after the replacement")
    isOver = true
    await calling

    const runs = (await nodes.calls()).map(([key]) => key)
    if (new Set(runs).size < runs.length) problems.push("a call has run twice")
    for (const key of answered) if (!runs.includes(key)) problems.push(`call ${key} has not run`)
    for (const client of clients) await client.close()
    const left = await eventually(async () => {
      const [row] = await nodes.query<{ readonly count: string }>("SELECT COUNT(*) AS count FROM skein_fleet_sessions")
      return row!.count === "0" ? undefined : `${row!.count} records of sessions are left`
    })
    if (left !== undefined) problems.push(left)
  } finally {
    await nodes.close()
  }
  return problems
}
