/** Configurations as hosts write them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as PoolError from "../../src/PoolError.ts"
import * as ServerConfig from "../../src/ServerConfig.ts"

const env = { TOKEN: "secret", EMPTY: "", HOME_URL: "https://example.com", NAME: "${TOKEN}" }
const options = { env, workspaceFolder: "/projects/tea", userHome: "/home/ada" }

const read = (config: unknown, more: ServerConfig.Options = {}) =>
  Effect.runSync(ServerConfig.read(config, { ...options, ...more }))

/** The only entry of a configuration, without `raw`. */
const entryOf = (entry: object, more?: ServerConfig.Options): object => {
  const { entries, problems } = read({ mcpServers: { a: entry } }, more)
  assert.deepStrictEqual(problems.map(({ message }) => message), [])
  const { raw, ...members } = entries[0]!
  assert.strictEqual(raw, entry)
  return members
}

const argOf = (arg: string, more?: ServerConfig.Options): string | undefined => {
  const entry = read({ mcpServers: { a: { command: "x", args: [arg] } } }, more).entries[0]
  return entry?.type === "stdio" ? entry.args[0] : undefined
}

const process = {
  type: "stdio",
  name: "a",
  command: "x",
  args: [],
  env: {},
  cwd: undefined,
  envFile: undefined
}

/** The only problem of a configuration with one entry. */
const problemOf = (entry: unknown, more?: ServerConfig.Options): PoolError.Reason => {
  const { entries, problems } = read({ mcpServers: { a: entry } }, more)
  assert.deepStrictEqual([entries.length, problems.length], [0, 1])
  return problems[0]!.reason
}

describe("the configuration of a host", () => {
  it("is read as Claude Desktop, Cursor, Windsurf, Cline and Gemini write it", () => {
    assert.deepStrictEqual(entryOf({ command: "npx", args: ["-y", "s"], env: { KEY: "v" } }), {
      ...process,
      command: "npx",
      args: ["-y", "s"],
      env: { KEY: "v" }
    })
    const http = { type: "http", name: "a", url: "https://example.com/mcp", headers: {} }
    assert.deepStrictEqual(entryOf({ url: http.url }), http)
    assert.deepStrictEqual(entryOf({ serverUrl: http.url }), http)
    assert.deepStrictEqual(entryOf({ httpUrl: http.url, timeout: 5, trust: true }), http)
    assert.deepStrictEqual(entryOf({ type: "streamableHttp", url: http.url, autoApprove: ["x"] }), http)
    assert.deepStrictEqual(entryOf({ type: "streamable-http", url: http.url }), http)
    assert.deepStrictEqual(entryOf({ type: "sse", url: "https://example.com/sse" }), {
      ...http,
      type: "sse",
      url: "https://example.com/sse"
    })
  })

  it("is read as VS Code writes it, in mcp.json and in its settings", () => {
    const servers = { a: { type: "stdio", command: "x", envFile: "${workspaceFolder}/.env", cwd: "${userHome}" } }
    for (const config of [{ servers }, { "editor.tabSize": 2, mcp: { servers, inputs: [] } }]) {
      const { raw: _, ...entry } = read(config).entries[0]!
      assert.deepStrictEqual(entry, { ...process, envFile: "/projects/tea/.env", cwd: "/home/ada" } as object)
    }
  })

  it("is read as Codex writes it, once it is parsed", () => {
    const { disabled, entries } = read({
      mcp_servers: {
        a: {
          url: "https://example.com/mcp",
          bearer_token_env_var: "TOKEN",
          http_headers: { "X-A": "1" },
          env_http_headers: { "X-B": "HOME_URL" }
        },
        off: { command: "x", enabled: false }
      }
    })
    assert.deepStrictEqual(entries[0]?.type === "http" && entries[0].headers, {
      "X-A": "1",
      "X-B": "https://example.com",
      Authorization: "Bearer secret"
    })
    assert.deepStrictEqual(disabled, ["off"])
  })

  it("accepts numbers, booleans and null where people write them", () => {
    const entry = entryOf({
      command: "x",
      args: [8080, true],
      env: { PORT: 8080, DEBUG: false, GONE: null },
      cwd: null
    })
    assert.deepStrictEqual(entry, {
      ...process,
      args: ["8080", "true"],
      env: { PORT: "8080", DEBUG: "false", GONE: undefined }
    } as object)
  })

  it("lists disabled entries without reading them", () => {
    const { disabled, entries, problems } = read({
      mcpServers: {
        a: { disabled: true, command: "${MISSING}" },
        b: { enabled: false },
        c: { command: "x", disabled: false }
      }
    })
    assert.deepStrictEqual([disabled, entries.map(({ name }) => name), problems], [["a", "b"], ["c"], []])
  })

  it("reports each invalid entry, and reads the others", () => {
    const { entries, problems } = read({
      mcpServers: {
        good: { command: "x" },
        number: 1,
        empty: {},
        both: { command: "x", url: "https://example.com" },
        blank: { command: " " },
        what: { type: "carrier pigeon", command: "x" },
        inherited: { type: "constructor", command: "x" },
        args: { command: "x", args: "-y" },
        env: { command: "x", env: { A: {} } },
        list: { command: "x", env: [] },
        relative: { url: "/mcp" },
        ftp: { url: "ftp://example.com" },
        nul: { command: "x\0y" },
        header: { url: "https://example.com", headers: { "X-A": "a\r\nb: c" } },
        headerName: { url: "https://example.com", headers: { "X A": "a" } },
        alsoGood: { url: "https://example.com" }
      }
    })
    assert.deepStrictEqual(entries.map(({ name }) => name), ["good", "alsoGood"])
    assert.deepStrictEqual(
      problems.map((
        { reason }
      ) => [reason._tag, reason.server, reason.message.replace(/^.* in the configuration /, "")]),
      [
        ["InvalidEntry", "number", "must be an object"],
        ["InvalidEntry", "empty", "has no command and no url"],
        ["InvalidEntry", "both", "has a command and a url: add a type, or remove one of them"],
        ["InvalidEntry", "blank", "has no command"],
        ["InvalidEntry", "what", "has the unknown type \"carrier pigeon\": use stdio, http or sse"],
        ["InvalidEntry", "inherited", "has the unknown type \"constructor\": use stdio, http or sse"],
        ["InvalidEntry", "args", "must have an array of strings as args"],
        ["InvalidEntry", "env", "must have a string as env.A"],
        ["InvalidEntry", "list", "must have an object as env"],
        ["InvalidEntry", "relative", "must have an http or https URL as url"],
        ["InvalidEntry", "ftp", "must have an http or https URL as url"],
        ["InvalidEntry", "nul", "has a NUL character in command"],
        ["InvalidEntry", "header", "has an invalid HTTP header \"X-A\""],
        ["InvalidEntry", "headerName", "has an invalid HTTP header \"X A\""]
      ]
    )
  })

  it("fails without servers, and not with an empty list of them", () => {
    for (const config of [{}, [], null, 1, "x", { mcpServers: [] }, { servers: "x" }]) {
      const error = Effect.runSync(Effect.flip(ServerConfig.read(config)))
      assert.strictEqual(error.reason._tag, "InvalidConfig")
    }
    assert.deepStrictEqual(read({ mcpServers: {} }), { entries: [], disabled: [], problems: [] })
  })

  it("keeps a server named like a member of Object.prototype", () => {
    const { entries } = read(
      JSON.parse(`{"mcpServers": {"__proto__": {"command": "x"}, "toString": {"command": "y"}}}`)
    )
    assert.deepStrictEqual(entries.map(({ name }) => name), ["__proto__", "toString"])
  })
})

describe("any value", () => {
  const text = Schema.Literals([
    "x",
    "",
    "${A}",
    "${env:A:-b}",
    "${input:i}",
    "${",
    "https://example.com",
    "stdio",
    "sse"
  ])
  const value = Schema.Union([text, Schema.Null, Schema.Boolean, Schema.Finite, Schema.String])
  const nested = Schema.Union([value, Schema.Array(value), Schema.Record(Schema.String, value)])
  const member = Schema.Literals([
    "command",
    "args",
    "env",
    "url",
    "headers",
    "type",
    "cwd",
    "disabled",
    "http_headers"
  ])
  const entry = Schema.Union([nested, Schema.Record(member, nested)])

  it.prop(
    "is read or reported, entry by entry, with the name of the server and never as a defect",
    [
      Schema.Record(Schema.String, entry),
      Schema.Union([nested, Schema.Array(Schema.Record(Schema.Literals(["id", "default"]), value))])
    ],
    ([mcpServers, inputs]) => {
      const { disabled, entries, problems } = read({ mcpServers, inputs }, { input: () => Effect.succeed(undefined) })
      assert.deepStrictEqual(
        [...entries.map(({ name }) => name), ...disabled, ...problems.map(({ reason }) => reason.server)].toSorted(),
        Object.keys(mcpServers).toSorted()
      )
    }
  )

  it("may be nested deeper than the stack", () => {
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)
    const { entries, problems } = read({ mcpServers: { a: { command: "x", extra: deep }, b: { command: deep } } })
    assert.deepStrictEqual([entries.length, problems.length], [1, 1])
  })
})

describe("variables", () => {
  it("are expanded in each string of an entry, and their values are not expanded again", () => {
    assert.deepStrictEqual(
      entryOf({
        command: "${env:TOKEN}",
        args: ["--t=${TOKEN}", "${NAME}"],
        env: { A: "${TOKEN}-${TOKEN}" },
        cwd: "${workspaceFolder}/x"
      }),
      {
        ...process,
        command: "secret",
        args: ["--t=secret", "${TOKEN}"],
        env: { A: "secret-secret" },
        cwd: "/projects/tea/x"
      }
    )
    const entry = entryOf({ url: "${HOME_URL}/mcp", headers: { Authorization: "Bearer ${TOKEN}" } })
    assert.deepInclude(entry, { url: "https://example.com/mcp", headers: { Authorization: "Bearer secret" } })
  })

  it("have defaults, also when they are empty", () => {
    assert.strictEqual(argOf("${MISSING:-a}"), "a")
    assert.strictEqual(argOf("${env:MISSING:-a b/c:d}"), "a b/c:d")
    assert.strictEqual(argOf("${EMPTY:-a}"), "a")
    assert.strictEqual(argOf("${EMPTY}"), "")
    assert.strictEqual(argOf("${MISSING:-}"), "")
    assert.strictEqual(argOf("${MISSING:-${TOKEN}}"), "secret")
    assert.strictEqual(argOf("${TOKEN:-a}"), "secret")
  })

  it("include those of the host", () => {
    assert.strictEqual(argOf("${workspaceFolderBasename}"), "tea")
    assert.strictEqual(argOf("${userHome}${/}x${pathSeparator}y", { pathSeparator: "\\" }), "/home/ada\\x\\y")
  })

  it("leave other text as it is", () => {
    for (const text of ["$TOKEN", "${", "${}}".slice(0, 2), "$${", "{TOKEN}", "a$"]) {
      assert.strictEqual(argOf(text), text)
    }
  })

  it("without a value fail their entry, with the name of the variable and no value", () => {
    const { message, ...missing } = problemOf({
      command: "x",
      env: { A: "${TOKEN}", B: "${MISSING}" }
    }) as PoolError.MissingVariable
    assert.strictEqual(missing._tag, "MissingVariable")
    assert.strictEqual(missing.variable, "MISSING")
    assert.strictEqual(
      message,
      "The server \"a\" in the configuration uses ${MISSING} in env.B, which has no value: set the variable, or write ${MISSING:-default}"
    )
    assert.notInclude(message, "secret")
    assert.strictEqual(
      problemOf({ command: "${workspaceFolder}" }, { workspaceFolder: undefined })._tag,
      "MissingVariable"
    )
    assert.strictEqual(problemOf({ command: "${constructor}" })._tag, "MissingVariable")
  })

  it("of an unknown kind fail their entry", () => {
    assert.include(
      problemOf({ command: "${command:pick}" }).message,
      "${command:pick} in command, which is not supported"
    )
  })

  it("take linear time", () => {
    const count = 200_000
    for (const part of ["${", "${a:-", "${a:-$", "$", "{", "${a:-${a:-x}"]) {
      const before = globalThis.process.cpuUsage().user
      read({ mcpServers: { a: { command: "x", args: [part.repeat(count)] } } })
      assert.isBelow(globalThis.process.cpuUsage().user - before, 2_000_000, part)
    }
  })
})

describe("inputs", () => {
  const config = {
    inputs: [
      { id: "key", type: "promptString", description: "API key", password: true },
      { id: "region", type: "pickString", options: ["eu", { label: "US", value: "us" }], default: "eu" },
      { id: "unused", type: "promptString" }
    ],
    servers: {
      a: { command: "x", env: { KEY: "${input:key}", REGION: "${input:region}" } },
      b: { command: "x", args: ["${input:key}"] },
      off: { command: "${input:unused}", disabled: true }
    }
  }

  it("are asked for once, if an enabled entry uses them", () => {
    const asked: Array<ServerConfig.Input> = []
    const { entries, problems } = read(config, {
      input: (input) => Effect.sync(() => (asked.push(input), input.id === "key" ? "k" : undefined))
    })
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(asked, [
      { id: "key", type: "promptString", description: "API key", default: undefined, password: true, options: [] },
      {
        id: "region",
        type: "pickString",
        description: undefined,
        default: "eu",
        password: false,
        options: ["eu", "us"]
      }
    ])
    assert.deepStrictEqual(entries.map((entry) => entry.type === "stdio" && [entry.args, entry.env]), [
      [[], { KEY: "k", REGION: "eu" }],
      [["k"], {}]
    ])
  })

  it("are not asked for by entries that `servers` excludes", () => {
    const asked: Array<string> = []
    const input = ({ id }: ServerConfig.Input) =>
      Effect.sync(() => {
        asked.push(id)
        return undefined
      })
    const { entries, problems } = read(config, { input, servers: (name) => name === "b" })
    assert.deepStrictEqual([asked, entries.length, problems.length], [["key"], 0, 1])
  })

  it("without a value fail the entries that use them", () => {
    const { entries, problems } = read({ ...config, servers: { ...config.servers, c: { command: "x" } } })
    assert.deepStrictEqual(entries.map(({ name }) => name), ["c"])
    assert.deepStrictEqual(
      problems.map(({ reason }) => reason._tag === "MissingVariable" && [reason.server, reason.variable]),
      [["a", "input:key"], ["b", "input:key"]]
    )
    assert.strictEqual(problemOf({ command: "${input:nowhere}" })._tag, "MissingVariable")
  })
})

describe("JSON with comments", () => {
  const parse = (text: string) => Effect.runSync(ServerConfig.parse(text))

  it("may have comments, trailing commas and a byte order mark", () => {
    const text = `\uFEFF// servers
      { /* all, of
           them */ "servers": { "a": { "url": "https://example.com//x", "args": ["/*", "//", ",]", "\\"//",], }, }, // end
      }`
    assert.deepStrictEqual(parse(text), {
      servers: { a: { url: "https://example.com//x", args: ["/*", "//", ",]", "\"//"] } }
    })
    assert.deepStrictEqual(parse("{\"a\": [1, /* c */ ] // d\r\n}"), { a: [1] })
  })

  it("fails with the position and without the text, which may have secrets", () => {
    for (
      const text of [
        "",
        "{",
        "[1,,]",
        "{\"token\": \"secret\" \"x\"}",
        "{\"token\": secret}",
        "/* {}",
        "{\"a\": \"secret"
      ]
    ) {
      const error = Effect.runSync(Effect.flip(ServerConfig.parse(text, "mcp.json")))
      assert.strictEqual(error.reason._tag, "InvalidConfig")
      assert.match(error.message, /^mcp\.json is not valid JSON with comments( \(at position \d+.*\))?$/)
      assert.notInclude(error.message, "secret")
    }
    assert.include(Effect.runSync(Effect.flip(ServerConfig.parse("{\n/* x */ \"a\" 1}"))).message, "line 2 column 13")
  })

  it("is parsed in linear time", () => {
    for (const part of ["\"\\", "/*", "//", ",", ", ", "/", "\""]) {
      const before = globalThis.process.cpuUsage().user
      Effect.runSync(Effect.flip(ServerConfig.parse(`x${part.repeat(500_000)}`)))
      assert.isBelow(globalThis.process.cpuUsage().user - before, 2_000_000, part)
    }
  })
})

describe("the lines in messages about a configuration", () => {
  const messages = (text: string, options?: ServerConfig.Options): ReadonlyArray<string> =>
    Effect.runSync(Effect.match(
      Effect.flatMap(
        ServerConfig.parse(text, "mcp.json"),
        (config) => ServerConfig.read(config, { source: "mcp.json", ...options })
      ),
      { onFailure: ({ message }) => [message], onSuccess: ({ problems }) => problems.map(({ message }) => message) }
    ))

  it("are those of the members that are wrong, and the other entries are read", () => {
    const text = `{
  // "mcpServers": {
  "mcpServers": {
    "text": { "command": "x",
      "disabled": "true" },
    "number": { "command": "x", "enabled": 0 },
    "none": null,
    "suffix": {
      "command": "x", "args": ["a"],
      "env": {
        "A": "a",
        "B": "\${HOME%/}",
      },
    },
    "args": { "command": "x", "args":
      "a" },
    "right": { "command": "x", "disabled": false, "env": null, "args": null },
  },
}`
    assert.deepStrictEqual(messages(text, { env: { HOME: "/home/ada" } }), [
      "The server \"text\" in mcp.json:5 must have true or false as disabled, without quotes",
      "The server \"number\" in mcp.json:6 must have true or false as enabled, without quotes",
      "The server \"none\" in mcp.json:7 must be an object",
      "The server \"suffix\" in mcp.json:12 uses ${HOME%/} in env.B, which is not supported: only ${VAR} and ${VAR:-default} are",
      "The server \"args\" in mcp.json:15 must have an array of strings as args"
    ])
    const { entries } = read(JSON.parse(JSON.stringify(Effect.runSync(ServerConfig.parse(text)))))
    assert.deepStrictEqual(entries.map(({ name }) => name), ["right"])
  })

  it("are those of a section that is null", () => {
    for (const name of ["mcpServers", "servers"]) {
      assert.deepStrictEqual(messages(`{\n\n"${name}": null}`), [
        `mcp.json:3 must have an object as ${name}, and has null: write {} if there are no servers`
      ])
    }
    assert.deepStrictEqual(messages(`{"mcp": {\n"servers": {\n"a": {}}}}`), [
      "The server \"a\" in mcp.json:3 has no command and no url"
    ])
    assert.deepStrictEqual(messages(`{"mcpServers": null, "servers": {"a": {"command": "x"}}, "inputs": null}`), [])
  })

  it("are those of the last of several members with one name", () => {
    assert.deepStrictEqual(messages(`{"servers": {\n"a": {"command": "x"},\n"a": {"command": 1,\n"env": 1}}}`), [
      "The server \"a\" in mcp.json:4 must have an object as env"
    ])
  })

  it("reads other expansions of a shell as problems", () => {
    for (const name of ["A%b", "A#b", "A/b/c", "A:?x", "A:+x", "A^^"]) {
      const [message] = messages(`{"servers": {"a": {"command": "\${${name}}"}}}`, { env: { A: "x" } })
      assert.include(message, "which is not supported", name)
    }
    const windows = messages(`{"servers": {"a": {"command": "\${ProgramFiles(x86)}"}}}`, {
      env: { "ProgramFiles(x86)": "C:" }
    })
    assert.deepStrictEqual(windows, [])
  })
})
