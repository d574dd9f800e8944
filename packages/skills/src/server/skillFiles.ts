/**
 * The files of a skill as a server sends them: text or bytes, media type, digest and size.
 */
import * as SkillMessage from "../shared/SkillMessage.ts"
import { exceededBound, type SkillBounds } from "../shared/skillBounds.ts"
import * as SkillMarkdown from "../shared/SkillMarkdown.ts"
import { quote } from "@skein/protocol/Text"
import * as Digest from "@skein/runtime/Digest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hint } from "@skein/server/Caching"
import { InvalidPath, InvalidSkill, LimitExceeded, SkillError } from "./SkillError.ts"

/** One file of a skill. */
export interface ServedFile extends SkillMessage.SkillFile {
  /** The last segment of its path. */
  readonly name: string
  readonly mimeType: string
  /** Text, where the bytes are UTF-8. */
  readonly body: string | Uint8Array
}

/** A skill with its content. */
export interface ServedSkill {
  readonly uri: string
  readonly frontmatter: SkillMessage.Frontmatter
  readonly files: ReadonlyArray<ServedFile>
  readonly hint: Hint
}

/** The content of a skill, by path within its folder. */
export interface SkillContent {
  /** The path of its folder, which ends with its name. */
  readonly path: string
  readonly files: ReadonlyMap<string, Uint8Array>
}

const mediaTypes: { readonly [extension: string]: string } = {
  md: "text/markdown",
  txt: "text/plain",
  csv: "text/csv",
  html: "text/html",
  css: "text/css",
  js: "text/javascript",
  mjs: "text/javascript",
  py: "text/x-python",
  sh: "application/x-sh",
  json: "application/json",
  yaml: "application/yaml",
  yml: "application/yaml",
  toml: "application/toml",
  xml: "application/xml",
  svg: "image/svg+xml",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
  zip: "application/zip"
}

/** Returns the media type of a file by the ending of its name, else a general type for text or bytes. */
export const mediaTypeOf = (name: string, isText: boolean): string => {
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? ""
  return (Object.hasOwn(mediaTypes, ending) ? mediaTypes[ending] : undefined) ??
    (isText ? "text/plain" : "application/octet-stream")
}

// A byte order mark is a part of the bytes that the digest covers.
const utf8 = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Returns the text of bytes that are UTF-8 without NUL, and the bytes themselves otherwise. */
export const bodyOf = (bytes: Uint8Array): string | Uint8Array => {
  if (bytes.includes(0)) return bytes
  try {
    return utf8.decode(bytes)
  } catch {
    return bytes
  }
}

/** Makes the failure of a skill that is invalid. */
export const invalidSkill = (path: string, problem: string): SkillError =>
  new SkillError({
    reason: new InvalidSkill({ message: `The skill ${quote(path)} is invalid: ${problem}`, skill: path })
  })

/** Makes the failure of a bound. */
export const exceeded = (limit: LimitExceeded["limit"], message: string): SkillError =>
  new SkillError({ reason: new LimitExceeded({ message, limit }) })

/** Encodes the path of a skill or of a file, or fails with `InvalidPath`. */
const encode = (path: string, rule: string): Result.Result<string, SkillError> => {
  const encoded = SkillMessage.encodePath(path)
  if (encoded !== undefined) return Result.succeed(encoded)
  const message = `The path of ${rule}, without ".", ".." and control characters: ${quote(path)}`
  return Result.fail(new SkillError({ reason: new InvalidPath({ message, path }) }))
}

/** Returns the URI of the folder of a skill, or fails with `InvalidPath`. */
export const rootUri = (path: string): Result.Result<string, SkillError> =>
  Result.map(encode(path, "a skill must be relative"), (path) => `skill://${path}`)

/** Returns the URI of a file of a skill, or fails with `InvalidPath`. */
export const fileUri = (root: string, path: string): Result.Result<string, SkillError> =>
  Result.map(encode(path, "a file must be relative to its skill"), (path) => `${root}/${path}`)

/** Checks the content of a skill, and computes the digests of its files. */
export const serve = Effect.fnUntraced(function*(
  content: SkillContent,
  bounds: SkillBounds,
  hint: Hint
): Effect.fn.Return<ServedSkill, SkillError> {
  const { files, path } = content
  const markdown = files.get(SkillMessage.fileName)
  const text = markdown === undefined ? undefined : bodyOf(markdown)
  if (text === undefined) return yield* invalidSkill(path, `it has no ${SkillMessage.fileName}`)
  if (typeof text !== "string") return yield* invalidSkill(path, `its ${SkillMessage.fileName} is not text in UTF-8`)
  const parsed = SkillMarkdown.parse(text)
  if (Result.isFailure(parsed)) return yield* invalidSkill(path, parsed.failure)
  const { frontmatter } = parsed.success
  const invalid = SkillMarkdown.formatProblem(frontmatter)
  if (invalid !== undefined) return yield* invalidSkill(path, invalid)
  if (frontmatter.name !== path.split("/").at(-1)) {
    return yield* invalidSkill(path, `its name ${quote(frontmatter.name)} must be that of its folder`)
  }
  const problem = exceededBound(path, [...files.values()].map(({ length }) => length), bounds)
  if (problem !== undefined) return yield* exceeded(problem.limit, problem.message)
  const root = yield* Effect.fromResult(rootUri(path))
  const served: Array<ServedFile> = []
  for (const [file, bytes] of [...files].sort(([a], [b]) => a < b ? -1 : 1)) {
    const uri = yield* Effect.fromResult(fileUri(root, file))
    const name = file.split("/").at(-1)!
    const body = bodyOf(bytes)
    const mimeType = mediaTypeOf(name, typeof body === "string")
    served.push({
      uri,
      name,
      mimeType,
      body,
      digest: SkillMessage.digestText(yield* Digest.sha256(bytes)),
      size: bytes.length
    })
  }
  return { uri: `${root}/${SkillMessage.fileName}`, frontmatter, files: served, hint }
})
