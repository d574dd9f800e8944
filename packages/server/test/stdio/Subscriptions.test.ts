import { afterEach, describe, expect, it } from "@effect/vitest"
import { type Child, run } from "./Child.ts"

let child: Child
afterEach(() => void child.process.kill("SIGKILL"))

const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/logLevel": "info"
}
const send = (id: number | string, method: string, params: object): void =>
  void child.process.stdin!.write(
    `${JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } })}\n`
  )
const messages = (): ReadonlyArray<string | number | undefined> =>
  child.stdout.all.map((line) => JSON.parse(line)).map(({ id, method }) => method ?? id)

describe("a stdio server with an open subscription", () => {
  it("2026-07-28 · ends it with its result and exits at once when stdin ends, regardless of shutdownTimeout", async () => {
    child = run("listening.ts")
    send("s", "subscriptions/listen", { notifications: { toolsListChanged: true } })
    await child.stdout.until("acknowledged")
    send(1, "tools/call", { name: "grow" })
    await child.stdout.until("list_changed")
    child.process.stdin!.end()
    expect(await child.exit).toBe(0)
    expect(messages()).toEqual([
      "notifications/subscriptions/acknowledged",
      "notifications/message",
      1,
      "notifications/tools/list_changed",
      "s"
    ])
    expect(JSON.parse(child.stdout.all.at(-1)!).result).toMatchObject({
      resultType: "complete",
      _meta: { "io.modelcontextprotocol/subscriptionId": "s" }
    })
    // The application's own loggers receive the same messages as the client, and never write to stdout.
    expect(child.stderr.all.join("\n")).toContain("growing")
  })

  it("2026-07-28 · when the server tears it down it SHOULD send a successful response: SIGTERM", async () => {
    child = run("listening.ts")
    for (const id of [1, 2, 3]) send(id, "subscriptions/listen", { notifications: { toolsListChanged: true } })
    await child.stdout.when(() => child.stdout.all.length === 3 ? true : undefined)
    child.process.kill("SIGTERM")
    expect(await child.exit).toBe(143)
    expect(messages().slice(3)).toEqual([1, 2, 3])
  })
})
