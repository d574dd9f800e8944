/**
 * Each template and style as a project outside of the repository: it is created by the built program and bundled, and its
 * bundle is driven by the official SDK, in a folder without `node_modules`. `npm run projects` checks and tests the projects,
 * with the packed packages.
 */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import * as esbuild from "esbuild"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Style } from "../src/CreateSkein.ts"
import { blocksOf } from "../../../docs/test/blocks.ts"
import {
  makeWorkspaces,
  readImage,
  removeWorkspaces,
  run,
  runScript,
  scriptOf,
  start,
  startScript,
  type Workspace,
  type Workspaces
} from "./projects.ts"

let workspaces: Workspaces
let isMade = false
beforeAll(async () => {
  workspaces = await makeWorkspaces()
  isMade = true
}, 180_000)
afterAll(async () => {
  if (isMade) await removeWorkspaces(workspaces)
})

const succeeded = { code: 0, output: expect.any(String) }

/** The modules that a bundle of esbuild imports. */
const imported = async (project: string): Promise<ReadonlyArray<string>> => {
  const { metafile } = await esbuild.build({
    absWorkingDir: project,
    entryPoints: ["src/main.ts"],
    bundle: true,
    platform: "node",
    format: "esm",
    write: false,
    metafile: true,
    logLevel: "silent"
  })
  return Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path))
}

/** Creates and bundles a project. Returns its folder, and one with nothing but the bundle. */
const make = async (template: string, style: Style) => {
  const workspace = workspaces[style]
  const name = `${template}-${style}`
  const project = join(workspace.folder, name)
  const { folder, program } = workspace
  const args = [program, name, "--template", template, "--style", style, "--no-install", "--no-git"]
  expect(await run(workspace, folder, process.execPath, args)).toEqual(succeeded)
  expect(await runScript(workspace, project, "build")).toEqual(succeeded)
  expect((await readdir(join(project, "dist"))).toSorted()).toEqual(["main.cjs", "main.cjs.map"])
  // The bundle of another bundler is complete too. The workspace has no PostgreSQL client.
  expect((await imported(project)).filter((path) => !path.startsWith("node:"))).toEqual([])
  const shipped = join(workspace.folder, "shipped", name)
  await mkdir(shipped, { recursive: true })
  await cp(join(project, "dist"), shipped, { recursive: true })
  return { project, shipped }
}

/** Uses a client of the official SDK whose user answers each question with the same content. */
const withClient = async (
  transport: Transport,
  content: Record<string, string>,
  use: (client: Client) => Promise<void>
): Promise<void> => {
  const client = new Client({ name: "projects", version: "1.0.0" }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content }))
  await client.connect(transport)
  try {
    await use(client)
  } finally {
    await client.close()
  }
}

const convert = async (client: Client): Promise<void> => {
  const result = await client.callTool({ name: "convert", arguments: { value: 212, from: "F", to: "C" } })
  expect(result.structuredContent).toEqual({ value: 100, unit: "C" })
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["units://all"])
}

describe.each(["effect", "async"] as const)("a project with the style %s", (style) => {
  let workspace: Workspace
  beforeAll(() => void (workspace = workspaces[style]))

  it("stdio: starts from the bundle and from source, and fills the compile cache", async () => {
    const { project, shipped } = await make("stdio", style)
    for (const args of [[join(shipped, "main.cjs")], [join(project, "src/main.ts")]]) {
      const env = { PATH: workspace.env["PATH"] ?? "", TMPDIR: workspace.folder }
      const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" })
      await withClient(transport, {}, convert)
    }
    const [version = ""] = await readdir(join(workspace.folder, "node-compile-cache"))
    expect(await readdir(join(workspace.folder, "node-compile-cache", version))).not.toEqual([])
  }, 180_000)

  it("stdio: is packed as one file, which is installed and started by the name of the package", async () => {
    const project = join(workspace.folder, `packed-${style}`)
    const args = [workspace.program, project, "--template", "stdio", "--style", style, "--no-install", "--no-git"]
    expect(await run(workspace, workspace.folder, process.execPath, args)).toEqual(succeeded)
    expect(await run(workspace, project, "npm", ["pack"])).toEqual(succeeded)
    const tarball = `packed-${style}-0.1.0.tgz`
    // Outside of the workspace: in it npm would remove packages of this repository, to which the workspace links.
    const user = await mkdtemp(join(tmpdir(), "skein-user-"))
    try {
      await writeFile(join(user, "package.json"), "{}")
      const installing = ["install", "--offline", "--no-audit", "--no-fund", join(project, tarball)]
      expect(await run(workspace, user, "npm", installing)).toEqual(succeeded)
      const names = (await readdir(join(user, "node_modules"))).filter((name) => !name.startsWith("."))
      expect(names).toEqual([`packed-${style}`])
      expect((await readdir(join(user, `node_modules/packed-${style}`), { recursive: true })).toSorted())
        .toEqual(["README.md", "dist", "dist/main.cjs", "package.json"])
      const env = { PATH: workspace.env["PATH"] ?? "", TMPDIR: workspace.folder }
      const command = join(user, `node_modules/.bin/packed-${style}`)
      await withClient(new StdioClientTransport({ command, env, cwd: user, stderr: "ignore" }), {}, convert)
    } finally {
      await rm(user, { recursive: true, force: true })
    }
  }, 180_000)

  it("stdio: the script dev restarts the server after a change, and its host stays connected", async () => {
    const project = join(workspace.folder, `restarted-${style}`)
    const args = [workspace.program, project, "--template", "stdio", "--style", style, "--no-install", "--no-git"]
    expect(await run(workspace, workspace.folder, process.execPath, args)).toEqual(succeeded)
    const script = await scriptOf(project, "dev")
    const env = { PATH: workspace.env["PATH"] ?? "", TMPDIR: workspace.folder }
    const transport = new StdioClientTransport({ command: "sh", args: ["-c", script], env, cwd: project })
    await withClient(transport, {}, async (client) => {
      await convert(client)
      const changed = new Promise<void>((resolve) =>
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
      )
      const source = join(project, "src/server.ts")
      const text = await readFile(source, "utf8")
      await writeFile(source, text.replace("Converts a value", "Changes a value"))
      await changed
      expect((await client.listTools()).tools[0]?.description).toMatch(/^Changes a value/)
      await convert(client)
    })
  }, 180_000)

  it("http: serves from the bundle, answers the health check, and stops at SIGTERM", async () => {
    const { project, shipped } = await make("http", style)
    const image = await readImage(project)
    const server = await start({ ...workspace, env: { ...workspace.env, ...image.env, SKEIN_PORT: "0" } }, shipped, [
      "main.cjs"
    ])
    const url = new URL(server.url.replace("0.0.0.0", "127.0.0.1"))
    await withClient(new StreamableHTTPClientTransport(url), {}, convert)
    const [node = "", ...probe] = image.health
    const probing = { ...workspace, env: { ...workspace.env, SKEIN_PORT: url.port } }
    expect(await run(probing, shipped, node, probe)).toEqual({ code: 0, output: "" })
    expect(await server.stop()).toBe(143)
    expect(await run(probing, shipped, node, probe)).toEqual({ code: 1, output: "" })
  }, 180_000)

  it("http: the script dev serves from source without a .env, and with one that exists", async () => {
    const project = join(workspace.folder, `dev-${style}`)
    const args = [workspace.program, project, "--template", "http", "--style", style, "--no-install", "--no-git"]
    expect(await run(workspace, workspace.folder, process.execPath, args)).toEqual(succeeded)
    // Six digits are the default, and two are those of the .env.
    for (const value of [1609.34, 1600]) {
      const server = await startScript(workspace, project, "dev")
      try {
        await withClient(new StreamableHTTPClientTransport(new URL(server.url)), {}, async (client) => {
          const result = await client.callTool({ name: "convert", arguments: { value: 1, from: "mi", to: "m" } })
          expect(result.structuredContent).toEqual({ value, unit: "m" })
        })
      } finally {
        await server.stop()
      }
      await writeFile(join(project, ".env"), "DIGITS=2\n")
    }
  }, 180_000)

  it("tasks: runs a task from the bundle, with a question, without the PostgreSQL client", async () => {
    const { shipped } = await make("tasks", style)
    const server = await start(
      { ...workspace, env: { ...workspace.env, PACKING_SECONDS: "0.01" } },
      shipped,
      ["--disable-warning=ExperimentalWarning", "main.cjs"]
    )
    await withClient(
      new StreamableHTTPClientTransport(new URL(server.url)),
      { address: "1 Tea Street" },
      async (client) => {
        const result = await client.callTool({ name: "order", arguments: { item: "sencha", quantity: 2 } })
        expect(result.content).toMatchObject([{
          text: expect.stringMatching(/^2 of sencha are on their way as parcel-/)
        }])
      }
    )
    expect(await server.stop()).toBe(143)
    expect(await readdir(shipped)).toContain("tasks.db")
  }, 180_000)

  it("client: lists the tools of the configured servers, and calls one that asks", async () => {
    const { project } = await make("client", style)
    const main = ["dist/main.cjs"]
    expect(await run(workspace, project, process.execPath, main)).toMatchObject({
      code: 0,
      output: expect.stringContaining("example reserve: Reserves a table.")
    })
    const call = [...main, "example", "reserve", "{\"day\":\"Monday\"}"]
    expect(await run(workspace, project, process.execPath, call, "4\n")).toMatchObject({
      code: 0,
      output: expect.stringContaining("A table for 4 on Monday")
    })
    const unknown = [...main, "nobody", "reserve"]
    expect(await run(workspace, project, process.execPath, unknown)).toMatchObject({
      code: 1,
      output: expect.stringContaining("nobody")
    })
  }, 180_000)
})

it("http: takes the tool of the quickstart and its test", async () => {
  const workspace = workspaces.async
  const project = join(workspace.folder, "my-server")
  const args = [workspace.program, project, "--template", "http", "--style", "async", "--no-install", "--no-git"]
  expect(await run(workspace, workspace.folder, process.execPath, args)).toEqual(succeeded)
  const blocks = blocksOf("quickstart-http.md")
  const textOf = (start: string) => blocks.find(({ info }) => info.startsWith(start))!.text
  await writeFile(join(project, "src/temperature.ts"), textOf("ts programs/quickstart/src/"))
  await writeFile(join(project, "test/temperature.test.ts"), textOf("ts programs/quickstart/test/"))
  const server = join(project, "src/server.ts")
  const [added = "", , last = ""] = textOf("typescript").split("\n")
  await writeFile(server, `${added}\n${await readFile(server, "utf8")}\n${last}\n`)
  expect(await runScript(workspace, project, "check")).toEqual({ code: 0, output: "" })
  expect(await runScript(workspace, project, "test")).toEqual({ code: 0, output: expect.stringContaining("5 passed") })
}, 180_000)
