/**
 * The programs whose start is measured: servers on stdio and clients over HTTP, as plain JavaScript that imports its
 * packages from `node_modules`. Those of the package `skein` are in the folder in which it is installed.
 */
import { build } from "esbuild"
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as clients from "../client/peers.ts"

/** A program under test. */
export interface Program {
  readonly label: string
  readonly command: ReadonlyArray<string>
}

/** The programs, the bare ones first. */
export interface Programs {
  readonly servers: ReadonlyArray<Program>
  readonly clients: ReadonlyArray<Program>
}

const here = fileURLToPath(new URL(".", import.meta.url))

/** The server of `benchmarks/stdio/peers`, with arguments of a schema of Zod or without arguments. */
const server = (zod: string | undefined): string => {
  const options = `description: "Greets a person by name"${
    zod === undefined ? "" : ", input: z.object({ name: z.string() })"
  }`
  return [
    `import { AsyncServer } from "skein"`,
    ...zod === undefined ? [] : [`import * as z from "${zod}"`],
    `new AsyncServer({ name: "hello", version: "1.0.0" })`,
    `  .tool("greet", { ${options} }, async (${zod === undefined ? "" : "{ name }"}) => ${
      zod === undefined ? `"Hello!"` : "`Hello, ${name}!`"
    })`,
    `  .runStdio()`,
    ""
  ].join("\n")
}

const client = `import { AsyncClient } from "skein/client"
const client = await AsyncClient.connect(process.argv[2])
const { content: [first] } = await client.callTool("greet", { name: "n1" })
console.log(first.text)
await client.close()
`

/** Writes the programs of the package that is installed in a folder. Those of entries that it lacks are left out. */
const ofPackage = (folder: string): Programs => {
  const installed = join(folder, "node_modules", "skein")
  if (!existsSync(join(installed, "dist", "index.js"))) {
    throw new Error(`${installed} has no built package: install the file of \`npm run pack\` there`)
  }
  const out = join(folder, "start-benchmark")
  rmSync(out, { recursive: true, force: true })
  mkdirSync(join(out, "node_modules"), { recursive: true })
  symlinkSync(join(here, "../../node_modules/zod"), join(out, "node_modules/zod"), "dir")
  const write = (label: string, file: string, entry: string, text: string): ReadonlyArray<Program> => {
    if (!existsSync(join(installed, "dist", `${entry}.js`))) return []
    writeFileSync(join(out, file), text)
    return [{ label, command: [process.execPath, join(out, file)] }]
  }
  return {
    servers: [
      ...write("skein", "server.mjs", "index", server(undefined)),
      ...write("skein, zod", "serverWithZod.mjs", "index", server("zod")),
      ...write("skein, skein/zod", "serverWithOwnZod.mjs", "zod", server("skein/zod"))
    ],
    clients: write("skein/client", "client.mjs", "client", client)
  }
}

const others = [
  { name: "bare", label: "bare Node" },
  { name: "sdkV1", label: "SDK v1 1.32.2, zod" },
  { name: "sdkV2", label: "SDK v2 2.4.0, zod" }
]

/** Builds the programs of the other libraries, and writes those of the package in a folder. */
export const prepare = async (folder: string): Promise<Programs> => {
  const out = join(here, "../dist/start")
  await build({
    entryPoints: others.map(({ name }) => join(here, "../stdio/peers", `${name}.ts`)),
    outdir: out,
    platform: "node",
    format: "esm",
    target: "node22",
    outExtension: { ".js": ".mjs" }
  })
  const own = ofPackage(folder)
  const [bare, ...sdks] = others.map(({ label, name }) => ({
    label,
    command: [process.execPath, join(out, `${name}.mjs`)]
  }))
  const peers = clients.all.filter(({ name }) => ["bare", "sdk-v1", "sdk-v2"].includes(name))
  await clients.prepare(peers)
  const [bareClient, ...sdkClients] = peers.map((peer) => ({
    label: peer.label,
    command: clients.startOf(peer, "node_modules", [])
  }))
  return {
    servers: [bare!, ...own.servers, ...sdks],
    clients: [bareClient!, ...own.clients, ...sdkClients]
  }
}
