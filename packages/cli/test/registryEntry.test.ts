/** The entry of a server in the MCP registry, and the manifest of a bundle, of what a server says about itself. */
import { assert, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import * as Formats from "ajv-formats"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { inflateRawSync } from "node:zlib"
import { directory } from "../../protocol/test/oracle/Spec.ts"
import { CommandFailed } from "../src/internal/base/process.ts"
import type { DescribedServer } from "../src/internal/develop/nodeDescribe.ts"
import { filesOf, manifestOf, zip } from "../src/internal/develop/nodeMcpb.ts"
import { makeEntry, problemOf, repositoryOf, suggestedName } from "../src/internal/develop/registryEntry.ts"

const full: DescribedServer = {
  options: {
    name: "tea-house",
    version: "1.2.0",
    title: "Tea House",
    description: "Brews tea.",
    websiteUrl: "https://tea.example.com/",
    icons: [
      { src: "https://tea.example.com/icon.png", mimeType: "image/png", sizes: ["48x48"] },
      { src: "data:image/png;base64,AAAA" }
    ]
  },
  tools: [{ name: "brew", description: "Brews a pot." }, { name: "pour" }],
  variables: [
    { name: "TEA_API_KEY", isRequired: true, isSecret: true },
    { name: "TEA_POT", isRequired: false, isSecret: false }
  ],
  manifest: {
    name: "@ada/tea-house",
    version: "1.2.0",
    mcpName: "io.github.ada/tea-house",
    author: "Ada <ada@example.com> (https://ada.example.com)",
    license: "MIT",
    keywords: ["tea", 1],
    bugs: { url: "https://github.com/ada/tea/issues" },
    engines: { node: ">=22" },
    repository: { type: "git", url: "git+https://github.com/ada/tea.git", directory: "packages/house" }
  }
}

const minimal: DescribedServer = {
  options: { name: "tea", version: "1.0.0" },
  tools: [],
  variables: [],
  manifest: { name: "tea", version: "1.0.0", author: { name: "Ada" } }
}

const nothing = { name: undefined, description: undefined, remote: undefined }

describe("makeEntry", () => {
  it("has the package, its variables, the repository, and what the server says about itself", () => {
    const { entry, notes } = makeEntry(full, nothing)
    assert.deepStrictEqual(entry, {
      $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
      name: "io.github.ada/tea-house",
      title: "Tea House",
      description: "Brews tea.",
      version: "1.2.0",
      websiteUrl: "https://tea.example.com/",
      repository: { url: "https://github.com/ada/tea", source: "github", subfolder: "packages/house" },
      icons: [{ src: "https://tea.example.com/icon.png", mimeType: "image/png", sizes: ["48x48"] }],
      packages: [{
        registryType: "npm",
        identifier: "@ada/tea-house",
        version: "1.2.0",
        transport: { type: "stdio" },
        environmentVariables: [{ name: "TEA_API_KEY", isRequired: true, isSecret: true }, { name: "TEA_POT" }]
      }]
    })
    assert.deepStrictEqual(notes, ["Icons are left out that have no https address of at most 255 characters"])
  })

  it("reports a version and a name that differ from those of the package", () => {
    const { entry, notes } = makeEntry(
      { ...minimal, manifest: { name: "tea", version: "2.0.0" } },
      { ...nothing, name: "com.example/tea" }
    )
    assert.deepStrictEqual([entry["name"], entry["version"]], ["com.example/tea", "1.0.0"])
    assert.deepStrictEqual(notes, [
      "The server has the version 1.0.0, and its package 2.0.0",
      "The registry compares the name with the package: npm pkg set mcpName=com.example/tea"
    ])
  })

  it("has only a remote server for a package that is private", () => {
    const { entry, notes } = makeEntry(
      { ...minimal, manifest: { ...full.manifest, private: true } },
      { ...nothing, remote: "https://example.com/mcp" }
    )
    assert.deepStrictEqual(entry["packages"], undefined)
    assert.deepStrictEqual(entry["remotes"], [{ type: "streamable-http", url: "https://example.com/mcp" }])
    assert.deepStrictEqual(notes, [])
  })

  it("reads a repository in each form of npm", () => {
    const forms = [
      "ada/tea",
      "github:ada/tea",
      "git@github.com:ada/tea.git",
      "git+ssh://git@github.com/ada/tea.git",
      "git://github.com/ada/tea.git",
      { url: "https://github.com/ada/tea" }
    ]
    for (const repository of forms) {
      assert.deepStrictEqual(repositoryOf({ repository }), { url: "https://github.com/ada/tea", source: "github" })
    }
    assert.deepStrictEqual(repositoryOf({ repository: "gitlab:ada/tea" })?.source, "gitlab")
    for (const repository of [undefined, "", "https://git.example.com/tea", 1]) {
      assert.strictEqual(repositoryOf({ repository }), undefined)
    }
    assert.strictEqual(suggestedName({ repository: "ada/tea" }, "tea house"), "io.github.ada/tea-house")
    assert.strictEqual(suggestedName({}, "tea"), "io.github.<user>/tea")
  })
})

/** Entries that the registry accepts, and those that it refuses. */
const { entry: valid } = makeEntry(full, nothing)
const accepted = [
  valid,
  makeEntry(full, { ...nothing, remote: "https://example.com/mcp", description: "Tea." }).entry,
  makeEntry(minimal, { ...nothing, name: "com.example/tea" }).entry
]
const [onlyPackage] = valid["packages"] as readonly [object]
const refused = [
  { ...valid, name: "tea" },
  { ...valid, name: "a/b/c" },
  { ...valid, description: "" },
  { ...valid, description: "x".repeat(101) },
  { ...valid, title: "x".repeat(101) },
  { ...valid, version: undefined },
  { ...valid, version: "x".repeat(256) },
  { ...valid, websiteUrl: "tea" },
  { ...valid, repository: { url: "https://github.com/ada/tea" } },
  { ...valid, icons: [{ src: "https://a.example/icon", mimeType: "image/gif" }] },
  { ...valid, icons: [{ src: "https://a.example/icon", sizes: ["large"] }] },
  { ...valid, remotes: [{ type: "streamable-http", url: "example.com/mcp" }] },
  { ...valid, remotes: [{ type: "streamable-http" }] },
  { ...valid, packages: [{ ...onlyPackage, version: "latest" }] },
  { ...valid, packages: [{ ...onlyPackage, identifier: undefined }] },
  { ...valid, packages: [{ ...onlyPackage, environmentVariables: [{ isRequired: true }] }] }
]

describe("problemOf", () => {
  it("accepts what makeEntry makes, and names the member that the registry would refuse", () => {
    for (const entry of accepted) assert.strictEqual(problemOf(entry), undefined)
    for (const entry of refused) assert.isString(problemOf(JSON.parse(JSON.stringify(entry))), JSON.stringify(entry))
    assert.match(problemOf({ ...valid, description: "x".repeat(101) })!, /100[^]*\["description"\]/)
    // "Version ranges are rejected", which the schema states in words only.
    for (const version of ["^1.2.3", "~1.2.3", ">=1.2.3", "1.x", "1.*"]) {
      assert.match(problemOf({ ...valid, version })!, /not a range/)
    }
  })

  const file = join(directory, "registry", "server.schema.json")

  it.skipIf(!existsSync(file))("agrees with the schema of the registry", () => {
    const ajv = new Ajv({ strict: false })
    Formats.default.default(ajv)
    const validate = ajv.compile(JSON.parse(readFileSync(file, "utf8")))
    for (const entry of accepted) assert.isTrue(validate(entry), JSON.stringify([validate.errors, entry]))
    for (const entry of refused) assert.isFalse(validate(JSON.parse(JSON.stringify(entry))), JSON.stringify(entry))
  })
})

describe("the bundle of a server", () => {
  it("has a manifest with the variables as settings, and a program that removes those without a value", () => {
    const { server, user_config: settings, ...manifest } = manifestOf(full)
    assert.deepStrictEqual(manifest, {
      manifest_version: "0.4",
      name: "tea-house",
      display_name: "Tea House",
      version: "1.2.0",
      description: "Brews tea.",
      author: { name: "Ada", email: "ada@example.com", url: "https://ada.example.com" },
      repository: { type: "git", url: "https://github.com/ada/tea" },
      homepage: "https://tea.example.com/",
      support: "https://github.com/ada/tea/issues",
      tools: [{ name: "brew", description: "Brews a pot." }, { name: "pour" }],
      keywords: ["tea"],
      license: "MIT",
      compatibility: { platforms: ["darwin", "linux", "win32"], runtimes: { node: ">=22" } }
    })
    assert.deepStrictEqual(server, {
      type: "node",
      entry_point: "server/start.cjs",
      mcp_config: {
        command: "node",
        args: ["${__dirname}/server/start.cjs"],
        env: { TEA_API_KEY: "${user_config.tea_api_key}", TEA_POT: "${user_config.tea_pot}" }
      }
    })
    assert.deepStrictEqual(settings, {
      tea_api_key: {
        type: "string",
        title: "Tea api key",
        description: "The variable TEA_API_KEY of the server",
        required: true,
        sensitive: true
      },
      tea_pot: {
        type: "string",
        title: "Tea pot",
        description: "The variable TEA_POT of the server",
        required: false,
        sensitive: false
      }
    })
  })

  it("has no settings and no further program for a server without variables", () => {
    const files = filesOf(minimal, new Uint8Array())
    assert.deepStrictEqual(files.map(({ name }) => name), ["manifest.json", "server/server.cjs"])
    const manifest = manifestOf(minimal)
    assert.deepStrictEqual(manifest["user_config"], undefined)
    assert.deepStrictEqual(manifest["description"], "tea")
  })

  it("needs an author", () => {
    for (const author of [undefined, "", "<ada@example.com>", {}]) {
      assert.throws(() => manifestOf({ ...minimal, manifest: { author } }), CommandFailed)
    }
  })

  it("is a ZIP file, and the same for the same files", () => {
    const text = "tea ".repeat(1_000)
    const files = [{ name: "server/größe.cjs", data: new TextEncoder().encode(text) }]
    const bytes = Buffer.from(zip(files))
    assert.deepStrictEqual(bytes, Buffer.from(zip(files)))
    assert.isBelow(bytes.length, 300)
    // The local header, and the data after the name.
    assert.strictEqual(bytes.readUInt32LE(0), 0x04034b50)
    const [packed, size, nameLength] = [bytes.readUInt32LE(18), bytes.readUInt32LE(22), bytes.readUInt16LE(26)]
    assert.strictEqual(bytes.toString("utf8", 30, 30 + nameLength), "server/größe.cjs")
    const data = inflateRawSync(bytes.subarray(30 + nameLength, 30 + nameLength + packed)).toString()
    assert.deepStrictEqual([data, size], [text, text.length])
    // The end has one entry, and the place of the directory.
    const end = bytes.length - 22
    assert.strictEqual(bytes.readUInt32LE(end), 0x06054b50)
    assert.strictEqual(bytes.readUInt16LE(end + 10), 1)
    assert.strictEqual(bytes.readUInt32LE(bytes.readUInt32LE(end + 16)), 0x02014b50)
  })
})
