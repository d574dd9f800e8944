/** `skein gateway init`: the servers of hosts in one configuration. */
import { describe, expect, it } from "@effect/vitest"
import * as NodeConfig from "@skein/client/NodeConfig"
import * as Effect from "effect/Effect"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { initGateway } from "../src/internal/gateway/gatewayInit.ts"
import { Process } from "../src/internal/base/process.ts"

/** Runs the command on a computer with these files, by their paths in its home, and returns what it printed. */
const init = (files: Readonly<Record<string, object | string>>, file = "mcp.json") =>
  Effect.gen(function*() {
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-init-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), typeof content === "string" ? content : JSON.stringify(content))
    }
    const printed: Array<string> = []
    const warned: Array<string> = []
    const out = join(home, file)
    const place = { platform: "linux", env: {}, home, folder: join(home, "project") }
    const exit = yield* Effect.exit(Effect.provideService(initGateway(out, place), Process, {
      env: {},
      terminal: undefined,
      console: {
        print: (text) => Effect.sync(() => void printed.push(text)),
        warn: (line) => void warned.push(line)
      }
    }))
    return { exit, out, printed, warned }
  })

const files = { command: "npx", args: ["-y", "@example/files"] }

describe("skein gateway init", () => {
  it.effect("writes the servers of all hosts, an equal one once and another one of a name with that of its host", () =>
    Effect.gen(function*() {
      const { exit, out, printed } = yield* init({
        ".config/Claude/claude_desktop_config.json": { mcpServers: { files, mail: { command: "mail" } } },
        ".cursor/mcp.json": { mcpServers: { files, mail: { url: "https://mail.example/mcp" } } },
        "project/.vscode/mcp.json":
          "{\n  // a comment\n  \"inputs\": [{ \"id\": \"key\", \"type\": \"promptString\" }],\n  \"servers\": { \"api\": { \"command\": \"api\", \"env\": { \"KEY\": \"${input:key}\" } }, }\n}",
        "project/.mcp.json": { mcpServers: { gateway: { command: "npx", args: ["skein", "gateway", "mcp.json"] } } }
      })
      expect(exit).toMatchObject({ _tag: "Success" })
      const config = JSON.parse(readFileSync(out, "utf8")) as Record<string, unknown>
      expect(config).toMatchObject({
        inputs: [{ id: "key" }],
        mcpServers: {
          files,
          mail: { command: "mail" },
          "mail-cursor": { url: "https://mail.example/mcp" },
          api: { command: "api", env: { KEY: "${input:key}" } }
        }
      })
      expect(Object.keys(config["mcpServers"] as object)).toHaveLength(4)
      expect(printed).toEqual([
        "files  Claude Desktop",
        "mail  Claude Desktop",
        "mail-cursor  Cursor",
        "api  VS Code"
      ])
      // It has the secrets of the entries.
      expect(statSync(out).mode & 0o777).toBe(0o600)
      const { problems, servers } = yield* NodeConfig.file(out, { input: () => Effect.succeed("secret") }).read
      expect(problems).toEqual([])
      expect([...servers.keys()]).toHaveLength(4)
    }).pipe(Effect.scoped))

  it.effect("writes nothing over a file, and without servers", () =>
    Effect.gen(function*() {
      const cursor = { ".cursor/mcp.json": { mcpServers: { files } } }
      const existing = yield* init({ ...cursor, "mcp.json": "{}" })
      expect(existing.exit).toMatchObject({ cause: { reasons: [{ error: { exitCode: 1 } }] } })
      expect(readFileSync(existing.out, "utf8")).toBe("{}")
      const none = yield* init({ ".cursor/mcp.json": "not JSON" })
      expect(none.exit).toMatchObject({
        cause: { reasons: [{ error: { exitCode: 1, report: expect.stringContaining("No servers were found") } }] }
      })
      expect(none.warned.join()).toContain("mcp.json")
    }).pipe(Effect.scoped))
})
