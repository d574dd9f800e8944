/**
 * Skills of servers: instructions for a model with the files that they need (the extension
 * `io.modelcontextprotocol/skills`, SEP-2640).
 *
 * {@link list} returns entries: the name and the description of each skill, and the digest and the size of each
 * of its files. Nothing is read before it is needed. {@link load} reads the `SKILL.md` of one skill, and verifies its
 * size, its digest and its frontmatter. A loaded skill reads its other files when they are asked for, and verifies them
 * too. Nothing that fails a check is returned.
 *
 * `SkillToolkit` offers skills to a model.
 *
 * **Gotchas.** A digest proves that a file is the one of the entry. It does not make the file trustworthy: entry and file
 * come from the same server. Treat instructions as untrusted text, ignore `allowed-tools` of the frontmatter, and let no
 * script of a skill run without the approval of the user.
 *
 * @example
 * const [entry] = yield* RemoteSkill.list(client)
 * const skill = yield* RemoteSkill.load(client, entry!)
 * const forms = yield* skill.read("references/FORMS.md")
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as SkillMessage from "../shared/SkillMessage.ts"
import { type Limits, skillBounds } from "../shared/skillBounds.ts"
import * as SkillMarkdown from "../shared/SkillMarkdown.ts"
import { quote } from "@skein/protocol/Text"
import * as Digest from "@skein/runtime/Digest"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { ClientError } from "@skein/client/ClientError"
import type { Client, PageOptions, RequestOptions } from "@skein/client/Client"
import { entryProblem, listedUri, resolve, skillError, type SkillTerms } from "./entry.ts"
import {
  DigestMismatch,
  FrontmatterMismatch,
  InvalidContent,
  InvalidMarkdown,
  LimitExceeded,
  type RemoteSkillError,
  SizeMismatch,
  SkillNotFound,
  UnlistedFile
} from "./RemoteSkillError.ts"

export type { Limits }

/** The entry of a skill. */
export type Entry = SkillMessage.Skill

/** The members of a client that skills use. */
export type SkillClient = Pick<Client, "request" | "requestAll" | "readResource">

// The methods of the extension only read. A client does not send others outside of the protocol again by default.
const repeatable = { retry: true } as const

/**
 * Lists one page of the entries of a server's skills.
 *
 * @example
 * const { nextCursor, skills } = yield* RemoteSkill.listPage(client)
 */
export const listPage = (
  client: SkillClient,
  { cursor, ...options }: PageOptions = {}
): Effect.Effect<SkillMessage.ListSkillsResult, ClientError> =>
  client.request(SkillMessage.ListSkills, cursor === undefined ? {} : { cursor }, { ...repeatable, ...options })

/**
 * Lists the entries of all skills of a server, as `client.listTools` does for tools. The list may be empty or partial: a
 * server may have skills that it does not list. No file of a skill is read.
 *
 * @example
 * const entries = yield* RemoteSkill.list(client)
 */
export const list = (
  client: SkillClient,
  options: RequestOptions = {}
): Effect.Effect<ReadonlyArray<Entry>, ClientError> =>
  client.requestAll(SkillMessage.ListSkills, ({ skills }) => skills, { ...repeatable, ...options })

/**
 * Returns the entry of a skill by the URI of its `SKILL.md`, listed or not. If the server has no such skill, the failure is
 * a `ProtocolError` whose `error.reason` is `InvalidParams`.
 *
 * @example
 * const entry = yield* RemoteSkill.get(client, "skill://refunds/SKILL.md", { cache: "refresh" })
 */
export const get = (
  client: SkillClient,
  uri: string,
  options: RequestOptions = {}
): Effect.Effect<Entry, ClientError> =>
  Effect.map(client.request(SkillMessage.GetSkill, { uri }, { ...repeatable, ...options }), ({ skill }) => skill)

/** The bounds of a skill, and the options of its requests. */
export interface Options {
  /**
   * The bounds of the skill. A skill that exceeds one fails with `LimitExceeded` before anything is read. Of a dynamic
   * skill, the bytes that are read are counted.
   */
  readonly limits?: Limits | undefined
  /** Whether skills without digests may be loaded, which cannot be verified: false by default. */
  readonly allowDynamic?: boolean | undefined
  /** The timeouts of each request: those of the client by default. */
  readonly request?: Pick<RequestOptions, "timeout" | "maxTimeout"> | undefined
}

/** A file of a skill. */
export interface File {
  readonly uri: string
  readonly mimeType: string | undefined
  readonly bytes: Uint8Array
  /** The bytes as text; `undefined` if they are not UTF-8. */
  readonly text: string | undefined
}

/** A loaded skill. It holds the entry from which it was loaded: a file that the entry does not list is not read. */
export interface RemoteSkill {
  readonly entry: Entry
  /** The instructions: the text of `SKILL.md` after its frontmatter. */
  readonly instructions: string
  /** The paths of its files, relative to its folder, as they are in the URIs. Empty for a dynamic skill. */
  readonly paths: ReadonlyArray<string>
  /**
   * Reads a file by its path relative to the skill, or by its URI, percent-encoded or not. A verified file is read once. Fails with `UnlistedFile`,
   * `SizeMismatch`, `DigestMismatch`, `InvalidContent`, and `LimitExceeded` for a dynamic skill.
   */
  readonly read: (path: string) => Effect.Effect<File, RemoteSkillError | ClientError>
}

const termsOf = (options: Options): SkillTerms => ({
  ...skillBounds(options.limits),
  allowDynamic: options.allowDynamic ?? false
})

/**
 * Checks an entry without reading anything: its URI, the list of its files, and the bounds. Use it to leave skills out
 * that {@link load} would refuse. Fails with `InvalidEntry`, `LimitExceeded` or `NotVerifiable`.
 *
 * @example
 * const usable = entries.filter((entry) => Result.isSuccess(RemoteSkill.check(entry)))
 */
export const check = (entry: Entry, options: Options = {}): Result.Result<Entry, RemoteSkillError> => {
  const problem = entryProblem(entry, termsOf(options))
  return problem === undefined ? Result.succeed(entry) : Result.fail(problem)
}

const encoder = /* @__PURE__ */ new TextEncoder()

/**
 * Returns a digest of a skill: of its URI, its frontmatter, and the URI and the digest of each of its files. Store it with
 * the approval of a user, under a name of the server that the host has given. If it differs later, the skill has changed
 * and must be approved again (SEP-2640, content-bound approval). It is `undefined` for a dynamic skill, whose approval must
 * not be stored.
 *
 * @example
 * const isApproved = approvals.get(`${server} ${entry.uri}`) === (yield* RemoteSkill.fingerprint(entry))
 */
export const fingerprint = ({ frontmatter, resources, uri }: Entry): Effect.Effect<string | undefined> => {
  if (resources === "dynamic") return Effect.succeed(undefined)
  const files = resources.map(({ digest, size, uri }) => [uri, digest, size]).sort(([a], [b]) => a! < b! ? -1 : 1)
  return Effect.map(Digest.sha256(CanonicalJson.stringify([uri, frontmatter, files])), SkillMessage.digestText)
}

const utf8 = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Reads a resource of a skill: the content with its URI. */
const fetch = Effect.fnUntraced(function*(
  client: SkillClient,
  skill: string,
  uri: string,
  options: Options
): Effect.fn.Return<File, RemoteSkillError | ClientError> {
  // Only a loaded skill may decide that content is still the one of its entry. It caches what it has verified.
  const { contents } = yield* client.readResource(uri, { ...options.request, cache: "bypass" })
  const found = contents.find((content) => content.uri === uri)
  const decoded = found === undefined
    ? Result.fail("no content with its URI")
    : "text" in found
    ? Result.succeed(encoder.encode(found.text))
    : Result.mapError(Base64.decode(found.blob), () => "content that is not base64")
  if (Result.isFailure(decoded)) {
    const message = `The server sent ${decoded.failure} for the file ${quote(uri)}`
    return yield* skillError(skill, new InvalidContent({ message, file: uri }))
  }
  const bytes = decoded.success
  return { uri, mimeType: found?.mimeType, bytes, text: textOf(bytes) }
})

const verify = Effect.fnUntraced(function*(
  { bytes, uri }: File,
  { digest, size }: SkillMessage.SkillFile,
  skill: string
): Effect.fn.Return<void, RemoteSkillError> {
  if (bytes.length !== size) {
    const message = `The file ${
      quote(uri)
    } has ${bytes.length} bytes and its entry says ${size}: the skill was not used`
    return yield* skillError(skill, new SizeMismatch({ message, file: uri }))
  }
  if (SkillMessage.digestText(yield* Digest.sha256(bytes)) === digest) return
  const message = `The file ${quote(uri)} does not have the digest of its entry: the skill was not used`
  return yield* skillError(skill, new DigestMismatch({ message, file: uri }))
})

/** The reader of the files of a skill, by URI. */
const readerOf = (
  client: SkillClient,
  { resources, uri: skill }: Entry,
  options: Options,
  { maxBytes }: SkillTerms
): (uri: string) => Effect.Effect<File, RemoteSkillError | ClientError> | undefined => {
  if (resources !== "dynamic") {
    const listed = new Map(resources.map((file) => [file.uri, file]))
    const verified = new Map<string, File>()
    return (uri) => {
      const entry = listed.get(uri)
      return entry === undefined ? undefined : Effect.gen(function*() {
        const known = verified.get(uri)
        if (known !== undefined) return known
        const file = yield* fetch(client, skill, uri, options)
        yield* verify(file, entry, skill)
        verified.set(uri, file)
        return file
      })
    }
  }
  let total = 0
  return Effect.fnUntraced(function*(uri) {
    const file = yield* fetch(client, skill, uri, options)
    total += file.bytes.length
    if (total <= maxBytes) return file
    const message = `More than maxBytes (${maxBytes}) bytes were read of the skill ${quote(skill)}`
    return yield* skillError(skill, new LimitExceeded({ message, limit: "maxBytes" }))
  })
}

const entryOf = (
  client: SkillClient,
  uri: string,
  options: Options
): Effect.Effect<Entry, RemoteSkillError | ClientError> => {
  const notFound = (message: string) => Effect.fail(skillError(uri, new SkillNotFound({ message })))
  return get(client, uri, options.request).pipe(
    Effect.catchIf(
      ({ reason }) => reason._tag === "ProtocolError" && reason.error.reason === "InvalidParams",
      () => notFound(`The server has no skill with the URI ${quote(uri)}`)
    ),
    Effect.filterOrElse(
      (entry) => entry.uri === uri,
      (entry) => notFound(`The server answered with the skill ${quote(entry.uri)}, not ${quote(uri)}`)
    )
  )
}

const markdownOf = (
  { frontmatter, uri }: Entry,
  { text }: File
): Result.Result<SkillMarkdown.SkillMarkdown, RemoteSkillError> => {
  const parsed = text === undefined
    ? Result.fail("it is not text in UTF-8")
    : SkillMarkdown.parse(text)
  if (Result.isFailure(parsed)) {
    const message = `The ${SkillMessage.fileName} of the skill ${quote(uri)} is invalid: ${parsed.failure}`
    return Result.fail(skillError(uri, new InvalidMarkdown({ message })))
  }
  const members = SkillMarkdown.differences(parsed.success.frontmatter, frontmatter)
  if (members.length === 0) return Result.succeed(parsed.success)
  const shown = members.slice(0, 5).map((member) => quote(member, 64)).join(", ")
  const message = `The frontmatter of the skill ${
    quote(uri)
  } is not that of its entry (${shown}): the skill was not used`
  return Result.fail(skillError(uri, new FrontmatterMismatch({ message, members })))
}

/**
 * Loads a skill by its entry, or by the URI of its `SKILL.md`, whose entry is then requested. It reads `SKILL.md` and no
 * other file.
 *
 * Fails with `ClientError`, or with `RemoteSkillError`: `SkillNotFound`; `InvalidEntry`, `LimitExceeded` or `NotVerifiable` before
 * anything is read; `InvalidContent`, `SizeMismatch`, `DigestMismatch`, `InvalidMarkdown` or `FrontmatterMismatch`.
 *
 * @example
 * const skill = yield* RemoteSkill.load(client, "skill://refunds/SKILL.md")
 */
export const load = Effect.fnUntraced(function*(
  client: SkillClient,
  skill: Entry | string,
  options: Options = {}
): Effect.fn.Return<RemoteSkill, RemoteSkillError | ClientError> {
  const bounds = termsOf(options)
  const entry = typeof skill === "string" ? yield* entryOf(client, skill, options) : skill
  const problem = entryProblem(entry, bounds)
  if (problem !== undefined) return yield* problem
  const { resources, uri } = entry
  const readUri = readerOf(client, entry, options, bounds)
  const unlisted = (file: string): RemoteSkillError =>
    skillError(
      uri,
      new UnlistedFile({ message: `The skill ${quote(uri)} does not list the file ${quote(file)}`, file })
    )
  const read: RemoteSkill["read"] = (path) => {
    const candidates = resolve(uri, path)
    // A dynamic skill has no list. Its URIs are encoded.
    const found = resources === "dynamic" ? candidates.at(-1) : listedUri(resources, candidates)
    return (found === undefined ? undefined : readUri(found)) ?? Effect.fail(unlisted(path))
  }
  const { instructions } = yield* Effect.fromResult(
    markdownOf(entry, yield* readUri(uri) ?? Effect.fail(unlisted(uri)))
  )
  const start = SkillMessage.rootOf(uri)!.length + 1
  const paths = resources === "dynamic" ? [] : resources.map((file) => file.uri.slice(start))
  return { entry, instructions, paths, read }
})
