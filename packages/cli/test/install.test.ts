/** `skein install`: the files of hosts in temporary folders. */
import { assert, describe, it } from "@effect/vitest"
import * as ServerConfig from "@skein/client/ServerConfig"
import * as Toml from "effect/encoding/Toml"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { changedLines, withEntry } from "../src/internal/install/configEdit.ts"
import type { Place } from "../src/internal/base/nodeFiles.ts"
import { defaultName } from "../src/internal/install/entryName.ts"
import { type HostName, hostNames, hosts } from "../src/internal/install/hosts.ts"
import { install } from "../src/internal/install/install.ts"
import type { InstallLine } from "../src/internal/install/install.ts"
import { type CommandFailed, Process } from "../src/internal/base/process.ts"
import { withTomlEntry } from "../src/internal/install/tomlEdit.ts"
import { folder, skein } from "./serverKit.ts"

const command = (...words: ReadonlyArray<string>): InstallLine["target"] => ({
  _tag: "Command",
  command: words[0]!,
  args: words.slice(1)
})

const lineOf = (host: HostName, options: Partial<InstallLine> = {}): InstallLine => ({
  target: command("npx", "-y", "tea-server"),
  host,
  name: "tea",
  headers: {},
  env: {},
  project: false,
  yes: true,
  force: false,
  print: false,
  json: false,
  ...options
})

/** A computer with a user and a project. */
const place: Effect.Effect<Place, never, Scope.Scope> = Effect.map(folder, (root) => {
  for (const name of ["home", "project"]) mkdirSync(join(root, name))
  return { platform: "linux", env: { TOKEN: "from here" }, home: join(root, "home"), folder: join(root, "project") }
})

const run = (line: InstallLine, at: Place, ...typed: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const [out, err, prompts]: ReadonlyArray<Array<string>> = [[], [], []]
    const answers = [...typed]
    const result = yield* Effect.result(Effect.provideService(install(line, at), Process, {
      env: at.env,
      console: { print: (text) => Effect.sync(() => void out!.push(text)), warn: (text) => void err!.push(text) },
      terminal: typed.length === 0 ? undefined : {
        readLine: (prompt) => Effect.sync(() => (prompts!.push(prompt), answers.shift())),
        writeLine: () => Effect.void
      }
    }))
    const failure: CommandFailed | undefined = Result.isFailure(result) ? result.failure : undefined
    return { code: failure?.exitCode ?? 0, out: out!, err: err!, prompts: prompts!, report: failure?.report }
  })

const fileOf = (host: HostName, at: Place, isProject = false): string => {
  const { projectFile, userFile } = hosts[host]
  return (isProject || userFile === undefined ? projectFile! : userFile)(at)
}

const put = (file: string, text: string): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** An existing file with comments, trailing commas and other entries. */
const existing = (member: string): string =>
  `// my servers
{
    "theme": "dark", // kept
    "${member}": {
        /* the first one */
        "other": { "command": "other", "env": { "KEY": "planted secret" } }, // and this
    },
}
`

const jsonHosts = hostNames.filter((host) => hosts[host].format === "json")

describe("skein install", () => {
  it.live("writes the command that serves a module, and with npx in the file of a project", () =>
    Effect.gen(function*() {
      const at = yield* place
      const module: InstallLine["target"] = { _tag: "Module", file: "src/server.ts" }
      put(join(at.folder, "src/server.ts"), "")
      put(join(at.folder, "package.json"), `{ "name": "@ada/my-tea" }`)
      const line = { target: module, name: undefined, print: true, json: true, exportName: "Tea", env: { A: "b" } }
      const inProject = JSON.parse((yield* run(lineOf("claude-code", line), at)).out[0]!)
      assert.deepStrictEqual([inProject.name, inProject.entry], ["my-tea", {
        type: "stdio",
        command: "npx",
        args: ["skein", "run", "--export=Tea", "src/server.ts"],
        env: { A: "b" }
      }])
      const { entry } = JSON.parse((yield* run(lineOf("claude-desktop", line), at)).out[0]!)
      assert.strictEqual(entry.command, process.execPath)
      assert.match(entry.args.join(" "), /bin\/skein\.ts run --export=Tea \/.*\/project\/src\/server\.ts$/)
    }))

  it.live("names the entry after the server of the module, which it starts", () =>
    Effect.gen(function*() {
      const at = yield* place
      const target = { _tag: "Module", file: join(import.meta.dirname, "teaHouse.ts") } as const
      const { err, out } = yield* run(lineOf("cursor", { target, name: undefined, print: true, json: true }), at)
      assert.deepStrictEqual([JSON.parse(out[0]!).name, err], ["tea-house", [`The entry for ${fileOf("cursor", at)}:`]])
    }))

  it.live("names it after the package if the server does not start, and reports why", () =>
    Effect.gen(function*() {
      const at = yield* place
      put(join(at.folder, "src/server.ts"), "throw new Error('no database')")
      const line = lineOf("cursor", { target: { _tag: "Module", file: "src/server.ts" }, name: undefined, json: true })
      const without = yield* run({ ...line, print: true }, at)
      assert.strictEqual(JSON.parse(without.out[0]!).name, "src")
      put(join(at.folder, "package.json"), "{ \"name\": \"@ada/my-tea\" }")
      const { err, out } = yield* run({ ...line, print: true }, at)
      assert.strictEqual(JSON.parse(out[0]!).name, "my-tea")
      assert.match(
        err[0]!,
        /^The server was started for its name, and failed\. The entry has that of the package: .*no database/s
      )
      const built = yield* run({ ...line, target: command("node", "src/server.ts"), print: true }, at)
      assert.strictEqual(JSON.parse(built.out[0]!).name, "my-tea")
    }))

  it.effect("replaces the entry of another server with --force only, or after a question that names it", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = fileOf("cursor", at)
      const entryOf = () => JSON.parse(readFileSync(file, "utf8")).mcpServers.tea
      const other = command("node", "/other/server.js")
      yield* run(lineOf("cursor", { target: other, env: { SECRET: "planted" } }), at)
      const refused = yield* run(lineOf("cursor"), at)
      assert.deepStrictEqual([refused.code, refused.report], [
        1,
        "Cursor has a server tea already, which is another one: node /other/server.js. Nothing was written: add this one " +
        "with --name <name>, or replace the other with --force"
      ])
      const asked = yield* run(lineOf("cursor", { yes: false }), at, "n")
      assert.deepStrictEqual(asked.prompts, [
        "This replaces another server with the name tea: node /other/server.js. Write this? [y]es, [n]o: "
      ])
      assert.deepStrictEqual(entryOf().args, ["/other/server.js"])
      // Other variables do not make it another server.
      assert.strictEqual((yield* run(lineOf("cursor", { target: other, env: { A: "b" } }), at)).code, 0)
      assert.deepStrictEqual(entryOf().env, { A: "b" })
      assert.strictEqual((yield* run(lineOf("cursor", { force: true }), at)).code, 0)
      assert.deepStrictEqual(entryOf().args, ["-y", "tea-server"])
    }))

  it.effect("replaces the entry of the same module, whatever starts it", () =>
    Effect.gen(function*() {
      const at = yield* place
      put(join(at.folder, "server.ts"), "")
      const module = lineOf("cursor", { target: { _tag: "Module", file: "server.ts" } })
      const path = join(at.folder, "server.ts")
      put(
        fileOf("cursor", at),
        JSON.stringify({ mcpServers: { tea: { command: "/old/node", args: ["/old/skein.js", "run", path] } } })
      )
      assert.strictEqual((yield* run(module, at)).code, 0)
      const elsewhere = yield* run({ ...module, target: { _tag: "Module", file: "/elsewhere/server.ts" } }, at)
      assert.include(elsewhere.report!, `which is another one: ${path}. Nothing was written`)
    }))

  for (const host of jsonHosts) {
    it.effect(`adds an entry to a file with comments, and keeps everything else · ${host}`, () =>
      Effect.gen(function*() {
        const at = yield* place
        const file = fileOf(host, at)
        const { member, title } = hosts[host]
        put(file, existing(member))
        const { code, err, out } = yield* run(lineOf(host, { env: { A: "b", TOKEN: undefined } }), at)
        assert.deepStrictEqual([code, out], [0, [`Installed tea in ${title}: ${file}`]])
        const text = readFileSync(file, "utf8")
        for (const line of existing(member).split("\n").filter((line) => line.includes("//") || line.includes("/*"))) {
          assert.include(text, line.trim())
        }
        const config = yield* ServerConfig.parse(text)
        assert.deepInclude(config as object, { theme: "dark" })
        // Clients of other hosts read the entry.
        const { entries, problems } = yield* ServerConfig.read(config)
        assert.deepStrictEqual(problems, [])
        assert.deepInclude(entries.find(({ name }) => name === "tea"), {
          type: "stdio",
          command: "npx",
          args: ["-y", "tea-server"],
          env: { A: "b", TOKEN: "from here" }
        })
        assert.isDefined(entries.find(({ name }) => name === "other"))
        // The change was shown, without the secrets of other entries, and nothing else was written.
        assert.include(err[0], `${file}\n@@ line `)
        assert.include(err[0], "+        \"tea\": {")
        assert.notInclude(err.join("\n"), "planted secret")
        assert.deepStrictEqual(readdirSync(dirname(file)).filter((name) => name.includes("tmp")), [])
        const again = yield* run(lineOf(host, { env: { A: "b", TOKEN: undefined } }), at)
        assert.deepStrictEqual([again.code, again.out, again.err], [
          0,
          [`${title} has this entry already: ${file}`],
          []
        ])
      }))

    it.effect(`creates the file · ${host}`, () =>
      Effect.gen(function*() {
        const at = yield* place
        const file = fileOf(host, at)
        yield* run(lineOf(host), at)
        const { member } = hosts[host]
        const { [member]: { tea } } = JSON.parse(readFileSync(file, "utf8"))
        assert.deepInclude(tea, { command: "npx", args: ["-y", "tea-server"] })
        // The entry can have secrets.
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      }))
  }

  it.effect("adds a server with a URL and headers in the form of each host", () =>
    Effect.gen(function*() {
      const target: InstallLine["target"] = { _tag: "Url", url: new URL("https://tea.example/mcp") }
      const line = { target, headers: { Authorization: "Bearer x" }, print: true, yes: false }
      const expected: Partial<Record<HostName, object>> = {
        "claude-code": { type: "http", url: "https://tea.example/mcp", headers: line.headers },
        cursor: { url: "https://tea.example/mcp", headers: line.headers },
        vscode: { type: "http", url: "https://tea.example/mcp", headers: line.headers },
        gemini: { httpUrl: "https://tea.example/mcp", headers: line.headers }
      }
      for (const host of ["claude-code", "cursor", "vscode", "gemini"] as const) {
        const at = yield* place
        const { err, out } = yield* run(lineOf(host, line), at)
        const config = JSON.parse(out[0]!)
        assert.deepStrictEqual(config, { [hosts[host].member]: { tea: expected[host] } })
        assert.deepStrictEqual(err, [`The entry for ${fileOf(host, at)}:`])
        assert.isFalse(existsSync(fileOf(host, at)))
        const { entries } = yield* ServerConfig.read(config)
        assert.deepInclude(entries[0], { type: "http", url: "https://tea.example/mcp", headers: line.headers })
      }
    }))

  it.effect("adds a table to the TOML of Codex, and keeps everything else", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = fileOf("codex", at)
      const before = "# mine\nmodel = \"gpt\" # kept\n\n[mcp_servers.other]\ncommand = 'other'"
      put(file, before)
      const target = command("npx", "a \"b\"\\\n\u007f")
      const { code } = yield* run(lineOf("codex", { target, env: { A: "b" } }), at)
      assert.strictEqual(code, 0)
      const text = readFileSync(file, "utf8")
      assert.strictEqual(
        text,
        `${before}\n\n[mcp_servers.tea]\ncommand = "npx"\nargs = ["a \\"b\\"\\\\\\n\\u007f"]\nenv = { A = "b" }\n`
      )
      const { mcp_servers: servers } = JSON.parse(JSON.stringify(Result.getOrThrow(Toml.parse(text))))
      assert.deepStrictEqual(servers, {
        other: { command: "other" },
        tea: { command: "npx", args: ["a \"b\"\\\n\u007f"], env: { A: "b" } }
      })
      const again = yield* run(lineOf("codex", { target, env: { A: "b" } }), at)
      assert.deepStrictEqual(again.out, [`Codex has this entry already: ${file}`])
      const changed = yield* run(lineOf("codex"), at)
      assert.deepStrictEqual([changed.code, readFileSync(file, "utf8")], [3, text])
      assert.include(changed.report!, "has another server \"tea\": change it by hand")
    }))

  it.effect("asks before it writes, and writes nothing without a confirmation", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = fileOf("cursor", at)
      const line = lineOf("cursor", { yes: false })
      for (const typed of [["n"], ["what?", "No"]]) {
        const { code, prompts, report } = yield* run(line, at, ...typed)
        assert.deepStrictEqual([code, report, prompts.length], [1, "Nothing was written", typed.length])
        assert.isFalse(existsSync(file))
      }
      const unattended = yield* run(line, at)
      assert.strictEqual(unattended.code, 2)
      assert.include(unattended.report!, "There is no terminal to confirm the change on")
      assert.isFalse(existsSync(file))
      const { code, prompts } = yield* run(line, at, "y")
      assert.deepStrictEqual([code, prompts], [0, ["Write this? [y]es, [n]o: "]])
      assert.isTrue(existsSync(file))
    }))

  it.effect("does not overwrite a file that changed while the question was open", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = fileOf("cursor", at)
      const changing = Effect.provideService(install(lineOf("cursor", { yes: false }), at), Process, {
        env: at.env,
        console: { print: () => Effect.void, warn: () => {} },
        terminal: {
          readLine: () => Effect.sync(() => (put(file, "{ \"other\": 1 }"), "y")),
          writeLine: () => Effect.void
        }
      })
      const { exitCode, report } = yield* Effect.flip(changing)
      assert.deepStrictEqual([exitCode, report], [3, `${file} has changed meanwhile. Nothing was written`])
      assert.strictEqual(readFileSync(file, "utf8"), "{ \"other\": 1 }")
    }))

  it.effect("refuses files that do not parse or have no place for the entry, and quotes nothing of them", () =>
    Effect.gen(function*() {
      const at = yield* place
      const cases = [
        ["{ \"mcpServers\": planted }", "is not valid JSON with comments (line 1, column 17)"],
        ["{ // planted\n", "is not valid JSON with comments (line 2, column 1)"],
        ["[]", "must be a JSON object"],
        ["{ \"mcpServers\": [] }", "must have an object as mcpServers"],
        ["{ \"mcpServers\": {}, \"mcpServers\": {} }", "has the member mcpServers more than once"],
        ["{ \"mcpServers\": { \"tea\": 1, \"tea\": 2 } }", "has the server \"tea\" more than once"]
      ] as const
      for (const [text, problem] of cases) {
        put(fileOf("cursor", at), text)
        const { code, err, out, report } = yield* run(lineOf("cursor"), at)
        assert.deepStrictEqual([code, out, err], [3, [], []])
        assert.strictEqual(report, `${fileOf("cursor", at)} ${problem}. Nothing was written`)
        assert.strictEqual(readFileSync(fileOf("cursor", at), "utf8"), text)
      }
      const deep = 200_000
      for (
        const [host, text] of [
          ["cursor", `{ "other": ${"[".repeat(deep)}${"]".repeat(deep)} }`],
          ["codex", `other = ${"[".repeat(deep)}${"]".repeat(deep)}`]
        ] as const
      ) {
        put(fileOf(host, at), text)
        const { code, report } = yield* run(lineOf(host), at)
        const problem = host === "codex" ? "is not valid TOML" : "is nested too deeply"
        assert.deepStrictEqual([code, report], [3, `${fileOf(host, at)} ${problem}. Nothing was written`])
        assert.strictEqual(readFileSync(fileOf(host, at), "utf8"), text)
      }
      for (const text of ["planted = ", "mcp_servers = { other = { command = 'x' } }"]) {
        put(fileOf("codex", at), text)
        const { code, report } = yield* run(lineOf("codex"), at)
        assert.strictEqual(code, 3)
        assert.notInclude(report!, "planted")
        assert.strictEqual(readFileSync(fileOf("codex", at), "utf8"), text)
      }
    }))

  it.effect("reports a file that cannot be read or written", () =>
    Effect.gen(function*() {
      const at = yield* place
      mkdirSync(fileOf("cursor", at), { recursive: true })
      const { code, report } = yield* run(lineOf("cursor"), at)
      assert.deepStrictEqual([code, report], [3, `${fileOf("cursor", at)} cannot be read: EISDIR`])
      put(join(at.home, ".gemini"), "a file")
      const blocked = yield* run(lineOf("gemini"), at)
      assert.strictEqual(blocked.code, 3)
    }))

  it.effect("keeps the mode of a file, and a link to it", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = fileOf("cursor", at)
      const real = join(at.home, "dotfiles.json")
      put(real, "{}")
      chmodSync(real, 0o640)
      mkdirSync(dirname(file))
      symlinkSync(real, file)
      yield* run(lineOf("cursor"), at)
      assert.deepStrictEqual(Object.keys(JSON.parse(readFileSync(real, "utf8")).mcpServers), ["tea"])
      assert.strictEqual(statSync(real).mode & 0o777, 0o640)
      assert.isTrue(readdirSync(dirname(file), { withFileTypes: true })[0]!.isSymbolicLink())
    }))

  it.effect("makes paths of existing files absolute, except in the file of a project", () =>
    Effect.gen(function*() {
      const at = yield* place
      put(join(at.folder, "server.mjs"), "")
      const target = command("node", "server.mjs", "./missing.mjs", "--file=./server.mjs", ".")
      const args = (host: HostName, project = false) =>
        Effect.map(
          run(lineOf(host, { target, project, print: true, yes: false }), at),
          ({ out }) => JSON.parse(out[0]!)[hosts[host].member].tea.args
        )
      const words = ["server.mjs", "./missing.mjs", "--file=./server.mjs", "."]
      const absolute = [join(at.folder, "server.mjs"), "./missing.mjs", "--file=./server.mjs", at.folder]
      assert.deepStrictEqual(yield* args("cursor"), absolute)
      assert.deepStrictEqual(yield* args("cursor", true), words)
      assert.deepStrictEqual(yield* args("vscode"), words)
    }))

  it.effect("warns that the values of --env and --header are in the file of a project", () =>
    Effect.gen(function*() {
      const warning =
        "The file of a project is often committed: it has the values of variables and headers in plain text"
      for (
        const [host, project, isWarned] of [["vscode", false, true], ["cursor", true, true], [
          "cursor",
          false,
          false
        ]] as const
      ) {
        const { err } = yield* run(lineOf(host, { project, env: { A: "b" } }), yield* place)
        assert.strictEqual(err.includes(warning), isWarned)
        const without = yield* run(lineOf(host, { project }), yield* place)
        assert.notInclude(without.err, warning)
      }
    }))

  it.effect("copies an entry of another host, and refuses what hosts write differently", () =>
    Effect.gen(function*() {
      const at = yield* place
      const file = join(at.home, "mcp.json")
      put(
        file,
        `{ // mine
        "mcpServers": {
          "my tea": { "command": "tea", "args": ["--hot"], "env": { "A": "b" } },
          "web": { "url": "https://tea.example/mcp", "headers": { "B": "c" } },
          "variable": { "command": "tea", "env": { "A": "\${SECRET}" } },
          "cwd": { "command": "tea", "cwd": "/tea" },
          "old": { "type": "sse", "url": "https://tea.example/sse" },
          "off": { "command": "tea", "disabled": true }
        }
      }`
      )
      const copy = (server: string, host: HostName = "vscode") =>
        run(
          lineOf(host, { target: { _tag: "Configured", file, server }, name: undefined, print: true, yes: false }),
          at
        )
      assert.deepStrictEqual(JSON.parse((yield* copy("my tea")).out[0]!), {
        servers: { "my-tea": { type: "stdio", command: "tea", args: ["--hot"], env: { A: "b" } } }
      })
      assert.deepStrictEqual(JSON.parse((yield* copy("web")).out[0]!), {
        servers: { web: { type: "http", url: "https://tea.example/mcp", headers: { B: "c" } } }
      })
      const cases = [
        ["variable", "uses ${SECRET} in env.A"],
        ["cwd", "has cwd or envFile, which not all hosts support"],
        ["old", "has the type sse"],
        ["off", "The server \"off\" is disabled in"],
        ["none", "The server \"none\" is not in"]
      ] as const
      for (const [server, problem] of cases) {
        const { code, out, report } = yield* copy(server)
        assert.deepStrictEqual([code, out], [2, []])
        assert.include(report!, problem)
      }
      const desktop = yield* copy("web", "claude-desktop")
      assert.strictEqual(desktop.code, 2)
      assert.include(desktop.report!, "under Connectors")
    }))

  it.effect("--env without a value needs the variable", () =>
    Effect.gen(function*() {
      const { code, report } = yield* run(lineOf("cursor", { env: { MISSING: undefined } }), yield* place)
      assert.deepStrictEqual([code, report], [2, "--env MISSING has no value, and MISSING is not set here"])
    }))

  it.effect("--json has the file, the entry and whether it was written", () =>
    Effect.gen(function*() {
      const at = yield* place
      const { out } = yield* run(lineOf("vscode", { json: true }), at)
      assert.deepStrictEqual(JSON.parse(out[0]!), {
        host: "vscode",
        file: fileOf("vscode", at),
        name: "tea",
        entry: { type: "stdio", command: "npx", args: ["-y", "tea-server"] },
        isWritten: true
      })
      const again = yield* run(lineOf("vscode", { json: true }), at)
      assert.isFalse(JSON.parse(again.out[0]!).isWritten)
    }))

  it.live("takes a command line, and reports what is wrong with one", () =>
    Effect.gen(function*() {
      const { code, out } = yield* skein("install", "--host", "vscode", "--print", "node", "a.mjs", "--json", "{}")
      assert.deepStrictEqual([code, JSON.parse(out[0]!).servers.a.args], [0, ["a.mjs", "--json", "{}"]])
      const wrong = (...argv: ReadonlyArray<string>) =>
        Effect.map(skein("install", ...argv), ({ code, err, out }) => {
          assert.deepStrictEqual([code, out], [2, []])
          return err[0]!
        })
      const url = "https://tea.example/mcp"
      assert.include(yield* wrong("--host", "cursor"), "A server is required")
      assert.include(yield* wrong(url), "--host is required: one of claude-desktop, claude-code")
      assert.include(yield* wrong("--config", "mcp.json", "--host", "cursor"), "--server is required")
      assert.include(yield* wrong("--server", "tea", "--host", "cursor", url), "--server needs --config")
      const configured = ["--config", "mcp.json", "--server", "tea", "--host", "cursor"]
      assert.include(yield* wrong(...configured, "--env", "A=b"), "cannot be used with --config")
      for (const module of ["src/nope.ts", "nope.mjs"]) {
        assert.include(yield* wrong("--host", "cursor", "--yes", module), `The module ${module} does not exist`)
      }
      assert.include(yield* wrong("--host", "emacs", url), "--host must be one of")
      assert.include(yield* wrong("--host", "claude-desktop", url), "in its settings, under Connectors")
      assert.include(yield* wrong("--host", "cursor", "--env", "A=b", url), "--env needs a command")
      assert.include(yield* wrong("--host", "cursor", "--header", "A: b", "node a.mjs"), "--header needs a server")
      assert.include(yield* wrong("--host", "codex", "--project", url), "--project cannot be used with --host codex")
      assert.include(yield* wrong("--host", "cursor", "--yes", "--print", url), "exclude each other")
      for (const name of ["", "a b", "a.b", "x".repeat(65), "\u001b[2J"]) {
        assert.include(yield* wrong("--host", "cursor", `--name=${name}`, url), "--name")
      }
    }))
})

describe("the file of a host", () => {
  const at = (platform: string, env: Place["env"] = {}): Place =>
    platform === "win32"
      ? { platform, env, home: "C:\\Users\\ada", folder: "C:\\tea" }
      : { platform, env, home: "/home/ada", folder: "/tea" }

  it("is that of the platform", () => {
    const files = (place: Place) => hostNames.map((host) => fileOf(host, place))
    assert.deepStrictEqual(files(at("darwin")), [
      "/home/ada/Library/Application Support/Claude/claude_desktop_config.json",
      "/tea/.mcp.json",
      "/home/ada/.cursor/mcp.json",
      "/tea/.vscode/mcp.json",
      "/home/ada/.gemini/settings.json",
      "/home/ada/.codex/config.toml"
    ])
    assert.deepStrictEqual(files(at("win32")), [
      "C:\\Users\\ada\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
      "C:\\tea\\.mcp.json",
      "C:\\Users\\ada\\.cursor\\mcp.json",
      "C:\\tea\\.vscode\\mcp.json",
      "C:\\Users\\ada\\.gemini\\settings.json",
      "C:\\Users\\ada\\.codex\\config.toml"
    ])
    assert.strictEqual(fileOf("claude-desktop", at("linux")), "/home/ada/.config/Claude/claude_desktop_config.json")
    assert.strictEqual(
      fileOf("claude-desktop", at("linux", { XDG_CONFIG_HOME: "/config" })),
      "/config/Claude/claude_desktop_config.json"
    )
    assert.strictEqual(
      fileOf("claude-desktop", at("win32", { APPDATA: "D:\\data" })),
      "D:\\data\\Claude\\claude_desktop_config.json"
    )
    assert.strictEqual(fileOf("codex", at("linux", { CODEX_HOME: "/codex" })), "/codex/config.toml")
    assert.strictEqual(fileOf("cursor", at("linux"), true), "/tea/.cursor/mcp.json")
    assert.strictEqual(fileOf("gemini", at("linux"), true), "/tea/.gemini/settings.json")
  })
})

describe("the name of an entry", () => {
  it("is that of the program, its package, or the host of the URL", () => {
    const cases: ReadonlyArray<readonly [string, string]> = [
      ["node server.mjs --port 3", "server"],
      ["npx -y @modelcontextprotocol/server-files@1.2.3 /tmp", "server-files"],
      ["uvx mcp-server-time", "mcp-server-time"],
      ["uv run tea.py", "tea"],
      ["/opt/tea/bin/tea-server", "tea-server"],
      ["C:\\tea\\server.exe", "server"],
      ["node", "node"]
    ]
    for (const [words, name] of cases) {
      const [first, ...args] = words.split(" ")
      assert.strictEqual(defaultName({ _tag: "Command", command: first!, args, env: {} }), name, words)
    }
    const url = (url: string) => defaultName({ _tag: "Url", url, headers: {} })
    assert.strictEqual(url("https://mcp.tea.example/mcp"), "tea-example")
    assert.strictEqual(url("http://[::1]:3000/"), "1")
  })
})

describe("the edit of a configuration", () => {
  const entry = { command: "x" }
  const edited = (text: string): string => Result.getOrThrow(withEntry(text, "mcpServers", "tea", entry))

  it("keeps indentation, line ends, a byte order mark and the end of the file", () => {
    assert.strictEqual(
      edited("{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}"),
      "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {},\r\n\t\t\"tea\": {\r\n\t\t\t\"command\": \"x\"\r\n\t\t}\r\n\t}\r\n}"
    )
    assert.match(edited("\uFEFF{}"), /^\uFEFF\{/)
    assert.strictEqual(edited("{\n    \"a\": 1\n}\n").split("\n")[2], "    \"mcpServers\": {")
    for (const empty of ["", "  \n", "// only a comment\n"]) {
      assert.include(edited(empty), "\"tea\": {")
      assert.include(edited(empty), empty.trim())
    }
  })

  it("adds an entry without a change of the lines before it, whose comments stay theirs", () => {
    const tea = "\"tea\": {\n      \"command\": \"x\"\n    }"
    const cases = [
      [
        "{\n  \"mcpServers\": {\n    \"a\": {} // a\n    // last\n  }\n}",
        `    "a": {}, // a\n    ${tea}\n    // last\n  }\n}`
      ],
      ["{\n  \"mcpServers\": {\n    \"a\": {}, /* a */ // b\n  }\n}", `    "a": {}, /* a */ // b\n    ${tea},\n  }\n}`],
      [
        "{\n  \"mcpServers\": {\n    \"a\": {} // a\n    , // b\n  }\n}",
        `    "a": {} // a\n    , // b\n    ${tea},\n  }\n}`
      ],
      ["{\n  \"mcpServers\": { \"a\": {} /* a */ }\n}", `  "mcpServers": { "a": {}, /* a */\n    ${tea}\n  }\n}`],
      ["{\n  \"mcpServers\": { // all\n  }\n}", `  "mcpServers": { // all\n    ${tea}\n  }\n}`],
      ["{\n  \"mcpServers\": {}\n}", `  "mcpServers": {\n    ${tea}\n  }\n}`]
    ] as const
    for (const [text, after] of cases) {
      assert.strictEqual(edited(text), `{\n${after.startsWith("    ") ? "  \"mcpServers\": {\n" : ""}${after}`)
    }
    assert.strictEqual(edited("{}"), `{\n  "mcpServers": {\n    ${tea}\n  }\n}`)
    assert.strictEqual(edited("{ \"a\": 1 }"), `{ "a": 1,\n  "mcpServers": {\n    ${tea}\n  }\n}`)
  })

  it("changes nothing else, whatever the file looks like", () => {
    const gaps = ["", " ", "\n", "// c\n", "/* c */", " // \"}\n  ", "\r\n\t", "/* , */"]
    let state = 7
    const pick = <A>(from: ReadonlyArray<A>): A =>
      from[(state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % from.length]!
    const object = (members: ReadonlyArray<string>): string =>
      `{${pick(gaps)}${members.map((each) => `${each}${pick(gaps)}`).join(`,${pick(gaps)}`)}${
        members.length > 0 && pick([true, false]) ? `,${pick(gaps)}` : ""
      }}`
    for (let run = 0; run < 2_000; run++) {
      const others = ["\"a\": {}", "\"b\": [1, \"// {\"]", "\"tea\" : 1"].slice(0, pick([0, 1, 2, 3]))
      const servers = `"mcpServers"${pick(gaps)}:${pick(gaps)}${object(others)}`
      const text = `${pick(gaps)}${
        object(pick([[], ["\"x\": 1"], [servers], ["\"x\": 1", servers], [servers, "\"y\": {}"]]))
      }${pick(gaps)}`
      // It fails if another member has changed, or if the text does not parse.
      const after = edited(text)
      for (const comment of text.match(/\/\/ c|\/\* c \*\/|\/\* , \*\//g) ?? []) assert.include(after, comment)
    }
  })

  it("replaces an entry of the same name in its place, and only that", () => {
    const before = "{ \"mcpServers\": { /* a */ \"tea\": { \"command\": \"old\" }, /* b */ \"z\": 1 } } // c"
    const after = edited(before)
    for (const comment of ["/* a */", "/* b */", "// c"]) assert.include(after, comment)
    assert.notInclude(after, "old")
    assert.isBelow(after.indexOf("\"tea\""), after.indexOf("\"z\""))
  })

  it("returns the same text for the same entry, in any order of its members", () => {
    const text = "{ \"mcpServers\": { \"tea\": { \"b\": [1], \"a\": { \"c\": \"d\" } } } }"
    const same = withEntry(text, "mcpServers", "tea", { a: { c: "d" }, b: [1] })
    assert.deepStrictEqual(same, Result.succeed(text))
    const toml = "[mcp_servers.tea]\nb = [\"1\"]\na = { c = \"d\" }\n"
    assert.deepStrictEqual(withTomlEntry(toml, "mcp_servers", "tea", { a: { c: "d" }, b: ["1"] }), Result.succeed(toml))
  })

  it("is shown by its lines", () => {
    assert.strictEqual(changedLines("a\nb\nc\n", "a\nB\nB\nc\n"), "@@ line 2 @@\n-b\n+B\n+B")
    assert.strictEqual(changedLines("", "a\n"), "@@ line 1 @@\n+a")
    assert.strictEqual(changedLines("a\r\na\r\n", "a\r\na\r\na\r\n"), "@@ line 3 @@\n+a")
  })
})
