/** The command lines of `cli.md`: they are valid, and those with an output print it. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { TeaHouse } from "../programs/shell.ts"
import { blocksOf, docs } from "./blocks.ts"

const blocks = blocksOf("cli.md")

/** The output of `subscribe` while another shell adds a tea. It follows the command of the other shell. */
const subscribed = blocks.find(({ text }) => text.startsWith("Subscribed"))!.text

/** The command lines of the guide, each with the output that follows it. */
const lines = blocks.flatMap(({ info, text }, at) => {
  if (info !== "sh" || !text.startsWith("skein ")) return []
  const next = blocks[at + 1]
  const output = next?.info === "text" && next.text !== subscribed ? next.text : undefined
  const commands = text.split("\n")
  return commands.map((line) => ({ line, output: commands.length === 1 ? output : undefined }))
})

/** The URL of the server in the guide. */
const documented = "http://127.0.0.1:3000/mcp"

/** Runs a command line. `onOutput` receives the output so far, and can interrupt the command. */
type Run = (
  line: string,
  onOutput?: (output: string, interrupt: () => void) => void
) => Promise<{ readonly code: unknown; readonly output: string }>

/** A shell with the program, in an empty folder, and the server of the guide. */
const shell: Effect.Effect<Run, never, Scope.Scope> = Effect.gen(function*() {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-docs-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const { handler } = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(TeaHouse)),
    (mounted) => Effect.promise(() => mounted.close())
  )
  const http = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const http = createServer((request, response) => void handler(request, response))
      await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
      return http
    }),
    (http) =>
      Effect.sync(() => {
        http.closeAllConnections()
        http.close()
      })
  )
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
  const [bin, folder] = [join(root, "bin"), join(root, "tea")]
  for (const path of [bin, folder, join(folder, ".zfunc")]) mkdirSync(path)
  const program = join(docs, "../packages/cli/src/bin/skein.ts")
  const command = `exec "${process.execPath}" --conditions=@skein/source "${program}" "$@"`
  writeFileSync(join(bin, "skein"), `#!/bin/sh\n${command}\n`)
  chmodSync(join(bin, "skein"), 0o755)
  writeFileSync(join(folder, "mcp.json"), JSON.stringify({ mcpServers: { tea: { url } } }))
  writeFileSync(join(folder, "answers.json"), JSON.stringify({ size: "s", cups: 1 }))
  return async (line, onOutput) => {
    const child = spawn("sh", ["-c", `exec 2>&1; exec ${line.replaceAll(documented, url)}`], {
      cwd: folder,
      env: { HOME: folder, PATH: [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter) },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      onOutput?.(output, () => child.kill("SIGINT"))
    })
    const [code] = await once(child, "close")
    return { code, output: output.trimEnd().replaceAll(url, documented).replaceAll(folder, "~/tea") }
  }
})

/** Times differ from run to run. */
const normalize = (text: string): string =>
  text.replaceAll(/\d+\.\d+ ms/g, "0.00 ms").replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "2026-07-28T09:30:00Z")

/** Interrupts a subscription, which has no end of its own. */
const whenSubscribed = (output: string, interrupt: () => void): void => {
  if (output.includes("Subscribed")) interrupt()
}

describe("the command lines of cli.md", () => {
  it.live("are valid, and print the outputs of the guide", () =>
    Effect.gen(function*() {
      assert.isAbove(lines.length, 20)
      const run = yield* shell
      for (const { line, output } of lines) {
        const ran = yield* Effect.promise(() => run(line, whenSubscribed))
        // The end of the report about an invalid command line.
        assert.notMatch(ran.output, /--help lists the (options|commands)\./, line)
        if (output !== undefined) assert.strictEqual(normalize(ran.output), normalize(output), line)
      }
    }), 120_000)

  it.live("print the changes that another shell causes", () =>
    Effect.gen(function*() {
      const run = yield* shell
      const lineWith = (part: string): string => lines.find(({ line }) => line.includes(part))!.line
      let other: Promise<unknown> | undefined
      const { output } = yield* Effect.promise(() =>
        run(lineWith("subscribe"), (output, interrupt) => {
          if (output.includes("Subscribed")) other ??= run(lineWith(" add "))
          if (output.includes("updated")) interrupt()
        })
      )
      yield* Effect.promise(async () => other)
      assert.strictEqual(normalize(output), normalize(subscribed))
    }), 60_000)

  it.live("have the exit codes of the guide", () =>
    Effect.gen(function*() {
      const run = yield* shell
      const codeOf = (line: string) => Effect.promise(async () => (await run(line, whenSubscribed)).code)
      assert.strictEqual(yield* codeOf(`skein call ${documented} brew '{"tea":"assam"}'`), 0)
      assert.strictEqual(yield* codeOf(`skein call ${documented} brew '{"tea":"coffee"}'`), 1)
      assert.strictEqual(yield* codeOf("skein inspect"), 2)
      assert.strictEqual(yield* codeOf("skein inspect http://127.0.0.1:1/mcp"), 3)
      assert.strictEqual(yield* codeOf(`skein read ${documented} shop://nothing`), 4)
      assert.strictEqual(yield* codeOf(`skein call --answer a=b ${documented} order`), 5)
      assert.strictEqual(yield* codeOf(`skein subscribe ${documented}`), 130)
    }), 60_000)
})
