/**
 * The quickstarts with async functions, and `by-hand.md`: projects with the files of their templates, whose commands print what
 * the pages say.
 */
import { createServer } from "node:http"
import { once } from "node:events"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { AsyncClient } from "skein/client"
import { describe, expect, it } from "vitest"
import type { Template } from "../../../packages/create-skein/src/internal/choices.ts"
import { filesOf } from "../../../packages/create-skein/src/internal/files.ts"
import { blocksOf, textOf } from "../blocks.ts"
import { fromSource, type Place, program, type Project, project, start, whileStarted } from "../runtime.ts"

/** The commands of a page that print something, with the output, by the first word after the name of the command. */
const commandsOf = (page: string): ReadonlyArray<{ readonly line: string; readonly output: string }> => {
  const blocks = blocksOf(page)
  return blocks.flatMap(({ info, text }, at) =>
    info === "sh" && /^npx skein .*$/.test(text) && blocks[at + 1]?.info === "text"
      ? [{ line: text.replace(/^npx /, ""), output: blocks[at + 1]!.text }]
      : []
  )
}

/** Uses a project, and removes it. */
const within = async (made: Project, use: (made: Project) => Promise<void>): Promise<void> => {
  try {
    await use(made)
  } finally {
    made.remove()
  }
}

/** Creates a project of a template as the quickstart does, with further files. */
const created = async (
  template: Template,
  use: (made: Project) => Promise<void>,
  change: (files: Map<string, string>) => void = () => {}
): Promise<void> => {
  const files = new Map(await filesOf({ name: "my-server", template, style: "async", packageManager: "npm" }))
  change(files)
  await within(project("my-server", files), use)
}

/** Runs the commands of a page, with the URL of its server, and compares the outputs. */
const compare = async (page: string, { run }: Project, count: number, url = ""): Promise<void> => {
  const commands = commandsOf(page).filter(({ line }) => line.includes("http://") === (url !== ""))
  expect(commands.length).toBe(count)
  for (const { line, output } of commands) {
    const ran = await run(line.replace("http://127.0.0.1:3000/mcp", url))
    expect(`${line}\n${ran.output}`).toBe(`${line}\n${output}`)
  }
}

/** Serves a weather service, which has an answer for Berlin only, and passes its URL in the environment. */
const withWeather = async (use: (place: Place) => Promise<void>): Promise<void> => {
  const server = createServer(({ url }, response) => {
    const { searchParams } = new URL(url!, "http://localhost")
    const place = [searchParams.get("latitude"), searchParams.get("longitude")].join()
    if (place !== "52.5,13.4" || searchParams.get("current") !== "temperature_2m") response.statusCode = 400
    response.end(JSON.stringify({ current: { temperature_2m: 21.5 } }))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as { readonly port: number }
  try {
    await use({ env: { WEATHER_URL: `http://127.0.0.1:${port}/` } })
  } finally {
    server.close().closeAllConnections()
  }
}

const greeting = { content: [{ type: "text", text: "Hello, Ada!" }] }

const quick = [...fromSource("quickStdio"), "quickStdioAsync"]

describe.each(quick)("programs/%s.ts", (name) => {
  it("greets, and says which argument is invalid", async () => {
    await using client = await AsyncClient.connect(program(`docs/programs/${name}.ts`))
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["greet"])
    expect(await client.callTool("greet", { name: "Ada" })).toMatchObject(greeting)
    expect(await client.callTool("greet", { name: 5 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^Invalid arguments for tool greet: .+\n {2}at \["name"\]$/) }]
    })
  })
})

describe("programs/quickstart", () => {
  it("returns the temperature that the service answers, and explains why there is none", () =>
    withWeather((place) =>
      whileStarted("quickstart/server", async (url) => {
        await using client = await AsyncClient.connect(url)
        expect(await client.callTool("temperature", { latitude: 52.5, longitude: 13.4 })).toMatchObject({
          structuredContent: { celsius: 21.5 }
        })
        expect(await client.callTool("temperature", { latitude: 0, longitude: 13.4 })).toMatchObject({
          isError: true,
          content: [{ text: "The weather service answered with 400" }]
        })
        expect((await fetch(new URL("/livez", url))).status).toBe(200)
      }, place)
    ))
})

describe("by-hand.md", () => {
  const text = textOf("by-hand.md", "ts programs/quickStdioAsync.ts")
  const made = () =>
    project("hello", [
      ["package.json", JSON.stringify({ name: "hello", type: "module" })],
      ["server.ts", text],
      ["http.ts", text.replace(".runStdio()", ".runHttp({ port: 3000 })")]
    ])

  it("calls the server", () => within(made(), (hello) => compare("by-hand.md", hello, 2)))

  it("inspects it over HTTP, where the client of quickstart-client.md calls it", () =>
    within(made(), (hello) =>
      whileStarted(join(hello.folder, "http.ts"), async (url) => {
        await compare("by-hand.md", hello, 1, url)
        const { args, command } = program("docs/programs/quickClient.ts", url)
        const { stdout } = await promisify(execFile)(command, [...args])
        expect(stdout).toMatch(
          /^greet: Greets a person by name\.\n\[\s*{\s*type: ['"]text['"],\s*text: ['"]Hello, Ada!['"]/
        )
      })))
})

describe("quickstart-stdio.md", () => {
  it("calls the tool of the project, and serves a client", () =>
    created("stdio", async (made) => {
      await compare("quickstart-stdio.md", made, 1)
      expect((await made.run("skein inspect src/server.ts")).output).toContain("units://all")
      await using client = await AsyncClient.connect(program(join(made.folder, "src/main.ts")))
      expect(await client.callTool("convert", { value: 212, from: "F", to: "C" })).toMatchObject({
        structuredContent: { value: 100, unit: "C" }
      })
    }))
})

describe("quickstart-http.md", () => {
  it("calls the tool of the project, and that of the page", () =>
    withWeather((place) =>
      created("http", (made) =>
        whileStarted(join(made.folder, "src/main.ts"), async (url) => {
          await compare("quickstart-http.md", made, 1, url)
          const { output } = await made.run(`skein call ${url} temperature latitude=52.5 longitude=13.4`)
          expect(output).toBe("{\"celsius\":21.5}")
        }, place), (files) => {
        const [, importing = "", using = ""] = /^(import .*\n)\n(.*)$/.exec(textOf("quickstart-http.md", "typescript"))!
        files.set("src/temperature.ts", textOf("quickstart-http.md", "ts programs/quickstart/src"))
        files.set("src/server.ts", `${importing}${files.get("src/server.ts")}${using}\n`)
      })
    ))
})

describe("quickstart-client.md", () => {
  it("lists the tools of the servers, and calls one that asks", () =>
    created("client", async ({ run }) => {
      const blocks = blocksOf("quickstart-client.md").filter(({ info }) => info === "text").map(({ text }) => text)
      expect(await run("node src/main.ts")).toEqual({ code: 0, output: blocks[0] })
      // The answer of the user is not printed here.
      const asked = await run("node src/main.ts example reserve '{\"day\":\"Monday\"}'", { input: "4\n" })
      expect(asked).toEqual({ code: 0, output: blocks[1]!.replace("4\n", "") })
    }))
})

describe("quickstart-tasks.md", () => {
  it("continues a task after the end of its process, and lists it", () =>
    created("tasks", async ({ folder, run }) => {
      const main = join(folder, "src/main.ts")
      const env = { PACKING_SECONDS: "0.01", TASKS_FILE: join(folder, "tasks.db") }
      const { child: first, url } = await start(main, { env })
      let child = first
      try {
        await using client = await AsyncClient.connect(url, {
          elicit: async () => {
            child.kill("SIGKILL")
            await once(child, "exit")
            child = (await start(main, { env: { ...env, ANY_PORT: new URL(url).port } })).child
            return { action: "accept", content: { address: "Elm Street" } }
          }
        })
        expect(await client.callTool("order", { item: "sencha", quantity: 2 })).toMatchObject({
          content: [{ text: expect.stringMatching(/^2 of sencha are on their way as parcel-[0-9a-f]{8}$/) }]
        })
        expect((await run("skein tasks list --sqlite tasks.db")).output).toMatch(/^ID .*\n\S+ +order +completed .*$/)
      } finally {
        child.kill("SIGKILL")
      }
    }))
})
