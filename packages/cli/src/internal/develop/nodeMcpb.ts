/**
 * The bundle of `skein build --mcpb`: a ZIP file with the file of the build and a manifest of version 0.4, which hosts
 * install with a double click.
 */
import { writeFile } from "node:fs/promises"
import { crc32, deflateRawSync } from "node:zlib"
import { CommandFailed } from "../base/process.ts"
import type { DescribedServer, Variable } from "./nodeDescribe.ts"
import { unusableFile } from "./nodeLoadModule.ts"
import { repositoryOf } from "./registryEntry.ts"

/** A file of a bundle. */
export interface BundledFile {
  /** Its path, with `/`. */
  readonly name: string
  readonly data: Uint8Array
}

/** The server in the bundle. */
const serverFile = "server/server.cjs"

/** The program that hosts start, if the server has variables. */
const startFile = "server/start.cjs"

const textOf = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const uriOf = (value: unknown): string | undefined =>
  typeof value === "string" && URL.canParse(value) ? value : undefined

/** `author` of a `package.json`: a text such as `Ada <ada@example.com> (https://example.com)`, or an object. */
const authorOf = (author: unknown): { readonly name: string } | undefined => {
  const read = (name: unknown, email: unknown, url: unknown) => {
    const text = textOf(name)?.trim()
    if (text === undefined || text === "") return undefined
    const [at, from] = [textOf(email), uriOf(url)]
    return { name: text, ...at === undefined ? {} : { email: at }, ...from === undefined ? {} : { url: from } }
  }
  if (typeof author === "string") {
    const [, name, email, url] = /^([^<(]+)(?:<([^>]*)>)?\s*(?:\(([^)]*)\))?/.exec(author) ?? []
    return read(name, email, url)
  }
  const { email, name, url } = (author ?? {}) as Readonly<Record<string, unknown>>
  return read(name, email, url)
}

/** The key of a variable in `user_config`. */
const keyOf = ({ name }: Variable): string => name.toLowerCase().replaceAll(/[^a-z0-9_]/g, "_")

/** `TEA_API_KEY` as `Tea api key`. */
const titleOf = ({ name }: Variable): string => {
  const words = name.toLowerCase().replaceAll("_", " ").trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const homepageOf = ({ bugs, homepage }: Readonly<Record<string, unknown>>) => ({
  homepage: uriOf(homepage),
  support: uriOf(typeof bugs === "object" && bugs !== null && "url" in bugs ? bugs.url : bugs)
})

const withoutUndefined = (record: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))

/** The manifest of a server. Fails without an author, which the format requires. */
export const manifestOf = (
  { manifest, options, tools, variables }: DescribedServer
): Readonly<Record<string, unknown>> => {
  const author = authorOf(manifest["author"])
  if (author === undefined) {
    throw unusableFile("A bundle needs the author of the server: npm pkg set author=\"Your Name\"")
  }
  const repository = repositoryOf(manifest)
  const keywords = manifest["keywords"]
  const { node } = (manifest["engines"] ?? {}) as { readonly node?: unknown }
  return withoutUndefined({
    manifest_version: "0.4",
    name: options.name.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-").replaceAll(/^-+|-+$/g, "") || "server",
    display_name: options.title,
    version: options.version,
    description: options.description ?? textOf(manifest["description"]) ?? options.title ?? options.name,
    author,
    repository: repository && { type: "git", url: repository.url },
    ...homepageOf({ homepage: options.websiteUrl, ...manifest }),
    server: {
      type: "node",
      entry_point: variables.length === 0 ? serverFile : startFile,
      mcp_config: {
        command: "node",
        args: [`\${__dirname}/${variables.length === 0 ? serverFile : startFile}`],
        env: Object.fromEntries(variables.map((each) => [each.name, `\${user_config.${keyOf(each)}}`]))
      }
    },
    tools: tools.map(({ description, name }) => withoutUndefined({ name, description })),
    keywords: Array.isArray(keywords) ? keywords.filter((each) => typeof each === "string").slice(0, 10) : undefined,
    license: textOf(manifest["license"]),
    compatibility: { platforms: ["darwin", "linux", "win32"], runtimes: { node: textOf(node) ?? ">=22.19" } },
    user_config: variables.length === 0 ? undefined : Object.fromEntries(variables.map((each) => [keyOf(each), {
      type: "string",
      title: titleOf(each),
      description: `The variable ${each.name} of the server`,
      required: each.isRequired,
      sensitive: each.isSecret
    }]))
  })
}

/**
 * The program that removes the variables without a value, and then starts the server. A host passes an empty text, or the
 * text of the manifest, for a setting that the person has left out: a default of the server would not apply.
 */
const startOf = (variables: ReadonlyArray<Variable>): string =>
  `"use strict";for(const name of ${
    JSON.stringify(variables.map(({ name }) => name))
  }){const value=process.env[name];` +
  "if(!value||value.startsWith(\"${user_config.\"))delete process.env[name]}require(\"./server.cjs\")\n"

const utf8 = new TextEncoder()

/** The files of a bundle. */
export const filesOf = (described: DescribedServer, server: Uint8Array): ReadonlyArray<BundledFile> => [
  { name: "manifest.json", data: utf8.encode(`${JSON.stringify(manifestOf(described), undefined, 2)}\n`) },
  { name: serverFile, data: server },
  ...described.variables.length === 0 ? [] : [{ name: startFile, data: utf8.encode(startOf(described.variables)) }]
]

// 1980-01-01, so that the same files make the same bundle.
const dosDate = 0x0021

/** The members that the two headers of a file share: APPNOTE.TXT of PKWARE, 4.3.7 and 4.3.12. */
const headerOf = (name: Uint8Array, data: Uint8Array, packed: Uint8Array): Buffer => {
  const header = Buffer.alloc(26)
  header.writeUInt16LE(20, 0)
  // The name is UTF-8.
  header.writeUInt16LE(0x0800, 2)
  header.writeUInt16LE(8, 4)
  header.writeUInt16LE(0, 6)
  header.writeUInt16LE(dosDate, 8)
  header.writeUInt32LE(crc32(data), 10)
  header.writeUInt32LE(packed.length, 14)
  header.writeUInt32LE(data.length, 18)
  header.writeUInt16LE(name.length, 22)
  return header
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** Packs files into a ZIP file. Node has no module for that. The files of a bundle are far below the bounds of ZIP64. */
export const zip = (files: ReadonlyArray<BundledFile>): Uint8Array => {
  const parts: Array<Buffer> = []
  const directory: Array<Buffer> = []
  let offset = 0
  for (const { data, name } of files) {
    const encoded = Buffer.from(name)
    const packed = deflateRawSync(data, { level: 9 })
    const header = headerOf(encoded, data, packed)
    const local = [Buffer.from("PK\u0003\u0004"), header, encoded, packed]
    // Made by Unix: the mode of a regular file, rwxr-xr-x.
    const attributes = Buffer.alloc(14)
    attributes.writeUInt32LE((0o100755 << 16) >>> 0, 6)
    attributes.writeUInt32LE(offset, 10)
    directory.push(Buffer.from("PK\u0001\u0002"), Buffer.from([20, 3]), header, attributes, encoded)
    parts.push(...local)
    offset += local.reduce((sum, { length }) => sum + length, 0)
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0)
  const counts = Buffer.alloc(8)
  counts.writeUInt16LE(files.length, 4)
  counts.writeUInt16LE(files.length, 6)
  return Buffer.concat(
    [...parts, ...directory, Buffer.from("PK\u0005\u0006"), counts, uint32(size), uint32(offset), Buffer.alloc(2)]
  )
}

/** Writes the bundle of a server. Returns its size in bytes. */
export const writeBundle = async (file: string, described: DescribedServer, server: Uint8Array): Promise<number> => {
  const bytes = zip(filesOf(described, server))
  await writeFile(file, bytes).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailed({ exitCode: 3, report: `The file ${file} cannot be written: ${reason}` })
  })
  return bytes.length
}
