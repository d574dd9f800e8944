/** The console of a server with two workers, each of which is a process. */
import { spawn } from "node:child_process"
import { request } from "node:http"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Row } from "../../src/internal/messages.ts"
import { Lines } from "../../../server/test/stdio/Child.ts"
import { modern } from "../../../server/test/http/kit.ts"

const program = fileURLToPath(new URL("server.ts", import.meta.url))
const child = spawn(process.execPath, ["--conditions=@skein/source", program], { stdio: ["ignore", "ignore", "pipe"] })
const stderr = new Lines(child.stderr)
let base: URL

beforeAll(async () => {
  base = new URL("/", /http:\S+/.exec(await stderr.until("Listening on"))![0])
})

afterAll(() => void child.kill("SIGKILL"))

/** Sends a request on a connection of its own: the workers take turns. */
const send = (path: string, body?: object, headers: object = {}): Promise<any> =>
  new Promise((resolve, reject) => {
    const sent = request(new URL(path, base), {
      method: body === undefined ? "GET" : "POST",
      agent: false,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers }
    }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (part: string) => void (text += part))
      response.on("end", () => resolve(text.startsWith("{") ? JSON.parse(text) : text))
      response.on("error", reject)
    })
    sent.on("error", reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

interface Tree {
  readonly instance: string
  readonly rows: ReadonlyArray<Row>
}

const tree = (): Promise<Tree> => send("/console/tree")

/** Reads the tree until a value is found. */
const until = async <A>(find: (tree: Tree) => A | undefined): Promise<A> => {
  while (true) {
    const found = find(await tree())
    if (found !== undefined) return found
  }
}

const call = (name: string) => {
  const { body, headers } = modern("tools/call", { name, arguments: {} })
  return send("/mcp", body as object, headers)
}

const idsOf = (rows: ReadonlyArray<Row>, kind: string) => rows.filter((row) => row.kind === kind).map(({ id }) => id)

describe("the console of several workers", { timeout: 120_000 }, () => {
  it("shows all workers at each one, with sums", async () => {
    const pids = [await call("pid"), await call("pid"), await call("pid")]
    expect(pids.every(({ result }) => result.content.length === 1)).toBe(true)
    const [one, other] = [await tree(), await tree()]
    expect(one.instance).toBe(other.instance)
    for (const { rows } of [one, other]) {
      expect(idsOf(rows, "server")).toEqual(["server:server"])
      expect(idsOf(rows, "worker")).toEqual(["server:w1/server", "server:w2/server"])
      const server = rows.find(({ id }) => id === "server:server")!
      expect(server).toMatchObject({ label: "tea 1.0.0", details: { workers: 2, "requests answered": 3 } })
    }
  })

  it("interrupts a request in the worker that runs it, wherever the viewer is", async () => {
    const calls = [call("hold"), call("hold")]
    const held = await until(({ instance, rows }) => {
      const found = rows.filter(({ label }) => label === "tools/call hold")
      return found.length === 2 ? { instance, ids: found.map(({ id }) => id) } : undefined
    })
    expect(held.ids.map((id) => id.slice(0, 10)).sort()).toEqual(["server:w1/", "server:w2/"])
    for (const id of held.ids) {
      expect(await send("/console/interrupt", { instance: held.instance, id })).toEqual({ outcome: "Interrupted" })
    }
    for (const answer of await Promise.all(calls)) expect(JSON.stringify(answer)).toContain("-32603")
    const [id] = held.ids
    expect(await send("/console/interrupt", { instance: held.instance, id })).toEqual({ outcome: "NotFound" })
    for (const id of ["server:w9/r1", "server:r1", "server:w1/", "server:w1/server"]) {
      expect(await send("/console/interrupt", { instance: held.instance, id })).toEqual({ outcome: "NotFound" })
    }
  })

  it("runs actions of other sources in their worker, and shows a shared source once", async () => {
    const { instance, rows } = await tree()
    expect(rows.filter(({ id }) => id.startsWith("database:"))).toHaveLength(1)
    const groups = rows.filter(({ label }) => label === "Jobs")
    expect(groups.map(({ details, id }) => [id, details?.["worker"]])).toEqual([["jobs:w1/all", 1], ["jobs:w2/all", 2]])
    for (let n = 0; n < 2; n++) {
      const acted = await send("/console/act", { instance, id: "jobs:w2/job", action: "restart" })
      expect(acted).toMatchObject({ outcome: "Done", message: expect.stringMatching(/^Restarted in \d+$/) })
    }
    const after = (await tree()).rows.filter(({ id }) => id.endsWith("/job")).map(({ label }) => label)
    expect(after).toEqual(["restarted 0 times", "restarted 2 times"])
    const mores = [await send("/console/more?parent=jobs:w1/all"), await send("/console/more?parent=jobs:w1/all")]
    expect(mores[0].rows).toMatchObject([{ id: "jobs:w1/other", parent: "jobs:w1/all" }])
    expect(mores[1]).toEqual(mores[0])
  })

  it("shows a worker that does not answer", async () => {
    const pids = new Set<number>()
    while (pids.size < 2) pids.add(Number((await call("pid")).result.content[0].text))
    const [stopped] = [...pids] as [number]
    process.kill(stopped, "SIGSTOP")
    try {
      // A connection to the stopped worker is not answered.
      const rows = await Promise.any([tree(), tree()])
      const states = rows.rows.filter(({ kind }) => kind === "worker").map(({ state }) => state)
      expect(states.sort()).toEqual(["lost", "running"])
    } finally {
      process.kill(stopped, "SIGCONT")
    }
  })
})
