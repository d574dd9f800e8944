/** Programs of other authors as clients of a fleet on PostgreSQL whose nodes are killed and replaced meanwhile. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import { textOf } from "../interactiveClientTests.ts"
import { callWhileKilled, describeNodes } from "../nodeProcesses.ts"
import { emptyHome, missingOf, program } from "../published/installation.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import type { Block, CallOutcome } from "../testClient.ts"

const launcher = fileURLToPath(
  new URL("./clients/launcher/build/index.js", import.meta.resolve("@modelcontextprotocol/inspector/package.json"))
)

/** Calls a tool with the command line of the Inspector, which opens a session for each call. */
const inspect = (home: string, url: string, name: string, { text }: Block): Promise<CallOutcome> =>
  new Promise((resolve, reject) => {
    const method = ["--method", "tools/call", "--tool-name", name, "--tool-arg", `text=${text as string}`]
    const args = [launcher, "--cli", ...method, "--format", "json", "-q", "--transport", "http", "--server-url", url]
    execFile(process.execPath, args, { env: { PATH: process.env["PATH"], HOME: home } }, (error, stdout) => {
      if (error === null) resolve((JSON.parse(stdout) as { readonly result: CallOutcome }).result)
      else reject(error)
    })
  })

const remote = missingOf(["mcp-remote"])

describeNodes("nodes that are killed", (nodes) => {
  it("the Inspector: only calls at them fail", async () => {
    const { balancer, http } = nodes()
    const home = emptyHome()
    let lost = 0
    const call = (name: string, args: Block) => {
      lost = balancer.lost.length
      return inspect(home, http.url, name, args)
    }
    // Each call is several requests, and the text is in one of them.
    await callWhileKilled(nodes(), { call }, { callers: 1, isLost: () => balancer.lost.length > lost })
    expect(balancer.statuses).not.toContain(404)
  })

  describe.skipIf(remote !== undefined)(remote ?? "mcp-remote", () => {
    it("only calls at them fail, and the session and its notifications go on", async () => {
      const args = [program("mcp-remote"), nodes().http.url, "--transport", "http-only", "--allow-http", "--silent"]
      const client = await SdkV1.connectInteractive({
        command: "env",
        args: [`HOME=${emptyHome()}`, process.execPath, ...args]
      })
      const killed = async () => {
        client.received.lists.length = 0
        expect(textOf(await client.call("change", {}))).toBe("changed")
        await eventually(() => expect(client.received.lists).toContain("tools"))
      }
      const { statuses } = nodes().balancer
      const before = statuses.length
      await callWhileKilled(nodes(), client, { killed })
      expect(statuses.slice(before)).not.toContain(404)
      await client.close()
    })
  })
})
