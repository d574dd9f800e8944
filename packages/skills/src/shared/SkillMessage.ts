/**
 * The messages of the skills extension, `io.modelcontextprotocol/skills` (SEP-2640): `skills/list`, `skills/get` and
 * `resources/directory/read`, in every revision, and the URIs of skills.
 *
 * A skill is a folder with a file `SKILL.md`. Each file of it is a resource. An entry describes a skill: the frontmatter
 * of its `SKILL.md`, and the URI, the digest and the size of each file. `SkillMarkdown` reads and writes `SKILL.md`.
 *
 * @example
 * SkillMessage.uriOf("acme/billing/refunds") // skill://acme/billing/refunds/SKILL.md
 */
import * as Schema from "effect/Schema"
import { essential } from "@skein/protocol/Annotate"
import { cacheFields } from "@skein/protocol/Caching"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { requestFields, resultFields } from "@skein/protocol/Message"
import type * as Method from "@skein/protocol/Method"
import { pageFields, PaginatedRequestParams } from "@skein/protocol/Pagination"
import { guarded, Uri } from "@skein/protocol/Primitive"
import * as Resource from "@skein/protocol/Resource"

/**
 * The identifier of the extension, under `extensions` in the capabilities of a server.
 *
 * @example
 * const isDeclared = client.capabilities.extensions?.[SkillMessage.extension] !== undefined
 */
export const extension = "io.modelcontextprotocol/skills"

/**
 * The name of the file that each skill has in its folder.
 *
 * @example
 * const markdown = files.get(SkillMessage.fileName)
 */
export const fileName = "SKILL.md"

/**
 * The media type of a directory resource.
 *
 * @example
 * const folders = resources.filter(({ mimeType }) => mimeType === SkillMessage.directoryType)
 */
export const directoryType = "inode/directory"

/**
 * How many files, `SKILL.md` included, a skill has at most that every host supports.
 *
 * @example
 * const isSupported = paths.length <= SkillMessage.maxFiles
 */
export const maxFiles = 512

/**
 * How many bytes all files of a skill have at most together that every host supports: 16 MiB.
 *
 * @example
 * const isSupported = total <= SkillMessage.maxBytes
 */
export const maxBytes = 16 * 1024 * 1024

/** The frontmatter of a `SKILL.md` as JSON: all members that its author wrote. */
export interface Frontmatter extends JsonObject {
  readonly name: string
  readonly description: string
}

const isFrontmatter = (value: unknown): value is Frontmatter =>
  isObject(value) && typeof value["name"] === "string" && typeof value["description"] === "string"

/**
 * The schema of the frontmatter: an object with a `name` and a `description`, returned by reference.
 *
 * @example
 * const isFrontmatter = Schema.is(SkillMessage.Frontmatter)
 */
export const Frontmatter = guarded<Frontmatter, Schema.Struct<{ name: Schema.String; description: Schema.String }>>(
  "an object with a name and a description",
  isFrontmatter,
  Schema.Struct({ name: Schema.String, description: Schema.String }),
  (value) => ({ ...value })
)

/** One file of a skill, with the digest and the size of its bytes. */
export class SkillFile extends Schema.Opaque<SkillFile>()(Schema.Struct({
  uri: Uri,
  /** `sha256:` and 64 lowercase hexadecimal digits. */
  digest: Schema.String,
  /** The number of bytes. */
  size: Schema.Int
})) {}

/** The entry of one skill. */
export class Skill extends Schema.Opaque<Skill>()(Schema.Struct({
  /** The URI of its `SKILL.md`. It identifies the skill within its server. */
  uri: Uri,
  frontmatter: Frontmatter,
  /** All files of the skill, or `"dynamic"` if their content has no stable digests. */
  resources: essential(Schema.Union([Schema.Array(SkillFile), Schema.Literal("dynamic")]))
})) {}

/** The result of `skills/list`. It may be empty or partial. */
export class ListSkillsResult extends Schema.Opaque<ListSkillsResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  skills: Schema.Array(Skill)
})) {}

/** The params of `skills/get`. */
export class GetSkillRequestParams extends Schema.Opaque<GetSkillRequestParams>()(Schema.Struct({
  ...requestFields,
  /** The URI of the skill's `SKILL.md`. */
  uri: Uri
})) {}

/** The result of `skills/get`. */
export class GetSkillResult extends Schema.Opaque<GetSkillResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields,
  skill: Skill
})) {}

/** The params of `resources/directory/read`. */
export class ReadDirectoryRequestParams extends Schema.Opaque<ReadDirectoryRequestParams>()(Schema.Struct({
  ...PaginatedRequestParams.fields,
  /** The URI of the directory, without a slash at its end. */
  uri: Uri
})) {}

/** The result of `resources/directory/read`: the direct children. Those of the type `inode/directory` have their own. */
export class ReadDirectoryResult extends Schema.Opaque<ReadDirectoryResult>()(Schema.Struct({
  ...pageFields,
  resources: Schema.Array(Resource.Resource)
})) {}

const entry = <P, R>(
  name: string,
  params: Schema.Codec<P, unknown>,
  result: Schema.Codec<R, unknown>,
  options: { readonly cacheable: boolean; readonly settings?: ReadonlyArray<string> }
): Method.RequestMethod<P, R> => ({
  kind: "request",
  name,
  from: "client",
  params,
  result,
  inputRequired: false,
  asInput: false,
  cacheable: options.cacheable,
  taskAugmented: false,
  taskAnswered: false,
  capability: { side: "server", path: ["extensions", extension, ...options.settings ?? []] },
  extension
})

/**
 * The method `skills/list`.
 *
 * @example
 * const { skills } = yield* client.request(SkillMessage.ListSkills, {})
 */
export const ListSkills: Method.RequestMethod<PaginatedRequestParams, ListSkillsResult> = /* @__PURE__ */ entry(
  "skills/list",
  PaginatedRequestParams,
  ListSkillsResult,
  { cacheable: true }
)

/**
 * The method `skills/get`.
 *
 * @example
 * const { skill } = yield* client.request(SkillMessage.GetSkill, { uri: "skill://refunds/SKILL.md" })
 */
export const GetSkill: Method.RequestMethod<GetSkillRequestParams, GetSkillResult> = /* @__PURE__ */ entry(
  "skills/get",
  GetSkillRequestParams,
  GetSkillResult,
  { cacheable: true }
)

/**
 * The method `resources/directory/read`, for a server that declares `directoryRead`.
 *
 * @example
 * const { resources } = yield* client.request(SkillMessage.ReadDirectory, { uri: "skill://refunds" })
 */
export const ReadDirectory: Method.RequestMethod<ReadDirectoryRequestParams, ReadDirectoryResult> =
  /* @__PURE__ */ entry("resources/directory/read", ReadDirectoryRequestParams, ReadDirectoryResult, {
    cacheable: false,
    settings: ["directoryRead"]
  })

const ending = `/${fileName}`

/**
 * Percent-encodes the segments of a path. Returns `undefined` for a path that is not relative to its folder, or that has
 * no form in a URI: with empty segments, `.` or `..`, control characters, or half of a surrogate pair.
 *
 * @example
 * SkillMessage.encodePath("references/My notes.md") // references/My%20notes.md
 */
export const encodePath = (path: string): string | undefined => {
  const segments = path.split("/")
  // oxlint-disable-next-line no-control-regex
  const isValid = path.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(path) &&
    segments.every((segment) => segment !== "" && segment !== "." && segment !== "..")
  return isValid ? segments.map(encodeURIComponent).join("/") : undefined
}

/**
 * Returns the URI of the `SKILL.md` of a skill by its path, such as `refunds` or `acme/billing/refunds`. Returns
 * `undefined` for a path that {@link encodePath} refuses.
 *
 * @example
 * SkillMessage.uriOf("acme/billing/refunds") // skill://acme/billing/refunds/SKILL.md
 */
export const uriOf = (path: string): string | undefined => {
  const encoded = encodePath(path)
  return encoded === undefined ? undefined : `skill://${encoded}${ending}`
}

/**
 * Returns the URI of the folder of a skill: that of its `SKILL.md` without the last segment. Returns `undefined` if the
 * URI does not end with `/SKILL.md`.
 *
 * @example
 * SkillMessage.rootOf("skill://acme/refunds/SKILL.md") // skill://acme/refunds
 */
export const rootOf = (uri: string): string | undefined =>
  uri.endsWith(ending) ? uri.slice(0, -ending.length) : undefined

/**
 * Returns the path of a skill by the URI of its `SKILL.md`: the segments between the scheme and the file, as they are in
 * the URI. The last one is the name of the skill. Returns `undefined` for a URI of another form.
 *
 * @example
 * SkillMessage.pathOf("skill://acme/billing/refunds/SKILL.md") // acme/billing/refunds
 */
export const pathOf = (uri: string): string | undefined => {
  const start = uri.indexOf("://")
  const root = rootOf(uri)
  const path = start < 0 || root === undefined ? "" : root.slice(start + 3)
  return path === "" ? undefined : path
}

/**
 * Returns the name of a skill: the last segment of {@link pathOf}.
 *
 * @example
 * SkillMessage.nameOf("skill://acme/refunds/SKILL.md") // refunds
 */
export const nameOf = (uri: string): string | undefined => pathOf(uri)?.split("/").at(-1)

/**
 * Whether a text is a digest as entries have it.
 *
 * @example
 * const isValid = files.every(({ digest }) => SkillMessage.isDigest(digest))
 */
export const isDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text)

/**
 * Makes the text of a digest of the 32 bytes of a SHA-256.
 *
 * @example
 * const digest = SkillMessage.digestText(createHash("sha256").update(bytes).digest())
 */
export const digestText = (hash: Uint8Array): string =>
  `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")}`
