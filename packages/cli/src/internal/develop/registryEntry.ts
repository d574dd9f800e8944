/**
 * The entry of a server in the MCP registry: `server.json`, in the form of its schema of 2025-12-11.
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { DescribedServer, Variable } from "./nodeDescribe.ts"

/** The address of the schema. */
export const schemaUrl = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

/** Where the source code is. */
export interface Repository {
  readonly url: string
  readonly source: string
  readonly subfolder?: string
}

/** An entry, and what of the server is not in it. */
export interface Entry {
  readonly entry: Readonly<Record<string, unknown>>
  readonly notes: ReadonlyArray<string>
}

const isVersion = Schema.makeFilter((version: string) =>
  version !== "latest" && !/^[\^~<>=]|(?:^|\.)[x*](?:\.|$)/i.test(version) ||
  "Expected one version, such as 1.0.2, and not a range"
)

const isUri = Schema.makeFilter((text: string) => URL.canParse(text) || "Expected an absolute URI")

const short = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(100))
const version = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255), isVersion)
const httpUrl = Schema.String.check(Schema.isPattern(/^https?:\/\/\S+$/))

const Transport = Schema.Union([
  Schema.Struct({ type: Schema.Literal("stdio") }),
  Schema.Struct({ type: Schema.Literal("streamable-http"), url: httpUrl })
])

/** The members that this program writes. The schema of the registry has further ones. */
const ServerJson = Schema.Struct({
  $schema: Schema.Literal(schemaUrl),
  name: Schema.String.check(
    Schema.isMinLength(3),
    Schema.isMaxLength(200),
    Schema.isPattern(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  ),
  description: short,
  title: Schema.optionalKey(short),
  version,
  websiteUrl: Schema.optionalKey(Schema.String.check(isUri)),
  repository: Schema.optionalKey(Schema.Struct({
    url: Schema.String.check(isUri),
    source: Schema.String,
    subfolder: Schema.optionalKey(Schema.String)
  })),
  icons: Schema.optionalKey(Schema.Array(Schema.Struct({
    src: Schema.String.check(Schema.isMaxLength(255), isUri),
    mimeType: Schema.optionalKey(
      Schema.Literals(["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"])
    ),
    sizes: Schema.optionalKey(Schema.Array(Schema.String.check(Schema.isPattern(/^(\d+x\d+|any)$/)))),
    theme: Schema.optionalKey(Schema.Literals(["light", "dark"]))
  }))),
  packages: Schema.optionalKey(Schema.Array(Schema.Struct({
    registryType: Schema.String,
    identifier: Schema.String.check(Schema.isMinLength(1)),
    version,
    transport: Transport,
    environmentVariables: Schema.optionalKey(Schema.Array(Schema.Struct({
      name: Schema.String,
      isRequired: Schema.optionalKey(Schema.Boolean),
      isSecret: Schema.optionalKey(Schema.Boolean)
    })))
  }))),
  remotes: Schema.optionalKey(Schema.Array(Transport))
})

const decode = Schema.decodeUnknownResult(ServerJson, { errors: "all", onExcessProperty: "error" })

/** Why the registry would refuse an entry; undefined if it is valid by the schema. */
export const problemOf = (entry: unknown): string | undefined => {
  const result = decode(entry)
  return Result.isFailure(result) ? result.failure.message : undefined
}

const textOf = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const forges: Readonly<Record<string, string>> = { "github.com": "github", "gitlab.com": "gitlab" }

/** The repository of a `package.json`, in each of the forms that npm accepts. */
export const repositoryOf = ({ repository }: Readonly<Record<string, unknown>>): Repository | undefined => {
  const { directory, url = repository } = (repository ?? {}) as { readonly url?: unknown; readonly directory?: unknown }
  const given = (textOf(url) ?? "")
    .replace(/^(?:github:)?([\w.-]+\/[\w.-]+)$/, "https://github.com/$1")
    .replace(/^gitlab:/, "https://gitlab.com/")
    .replace(/^git\+/, "")
    .replace(/^(?:ssh:\/\/)?git@([^:/]+)[:/]/, "https://$1/")
    .replace(/^git:/, "https:")
  const parsed = URL.parse(given)
  const source = parsed === null ? undefined : forges[parsed.hostname]
  if (parsed === null || source === undefined) return undefined
  const subfolder = textOf(directory)
  const at = `${parsed.origin}${parsed.pathname.replace(/\.git$/, "")}`
  return { url: at, source, ...subfolder === undefined ? {} : { subfolder } }
}

/** A name that the repository allows: that of a user or an organization of GitHub. */
export const suggestedName = (manifest: Readonly<Record<string, unknown>>, server: string): string => {
  const owner = /^https:\/\/github\.com\/([^/]+)\//.exec(repositoryOf(manifest)?.url ?? "")?.[1] ?? "<user>"
  return `io.github.${owner}/${server.replaceAll(/[^\w.-]+/g, "-")}`
}

const iconsOf = (icons: ReadonlyArray<Icon>): ReadonlyArray<Icon> =>
  icons.filter(({ src }) => src.startsWith("https://") && src.length <= 255)

const variableOf = ({ isRequired, isSecret, name }: Variable) => ({
  name,
  ...isRequired ? { isRequired } : {},
  ...isSecret ? { isSecret } : {}
})

/** The additions of the command line to the server. */
export interface EntryOptions {
  /** The name in the registry; by default `mcpName` of the package, or that of the server if it has a namespace. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** The URL of a server that others reach over HTTP. */
  readonly remote: string | undefined
}

/** Makes the entry of a server: of the package that npx starts, and of the server at `remote`. */
export const makeEntry = (
  { manifest, options, variables }: DescribedServer,
  { description, name, remote }: EntryOptions
): Entry => {
  const { icons = [], title, version, websiteUrl = textOf(manifest["homepage"]) } = options
  const identifier = textOf(manifest["name"])
  const packageVersion = textOf(manifest["version"])
  const notes: Array<string> = []
  const hasPackage = identifier !== undefined && packageVersion !== undefined && manifest["private"] !== true
  if (hasPackage && packageVersion !== version) {
    notes.push(`The server has the version ${version}, and its package ${packageVersion}`)
  }
  const mcpName = textOf(manifest["mcpName"])
  const used = name ?? mcpName ?? options.name
  if (hasPackage && mcpName !== used) {
    notes.push(`The registry compares the name with the package: npm pkg set mcpName=${used}`)
  }
  const usable = iconsOf(icons)
  if (usable.length < icons.length) {
    notes.push("Icons are left out that have no https address of at most 255 characters")
  }
  const repository = repositoryOf(manifest)
  const environmentVariables = variables.map(variableOf)
  const entry = {
    $schema: schemaUrl,
    name: used,
    title,
    description: description ?? options.description ?? textOf(manifest["description"]) ?? title ?? options.name,
    version,
    websiteUrl,
    repository,
    icons: usable.length === 0 ? undefined : usable,
    packages: hasPackage
      ? [{
        registryType: "npm",
        identifier,
        version: packageVersion,
        transport: { type: "stdio" },
        ...environmentVariables.length === 0 ? {} : { environmentVariables }
      }]
      : undefined,
    remotes: remote === undefined ? undefined : [{ type: "streamable-http", url: remote }]
  }
  return { entry: Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)), notes }
}
