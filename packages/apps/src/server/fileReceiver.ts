/**
 * Receives files in parts. The page declares the files, and their bytes are reserved; then it sends the parts in order. Every
 * message of the page is checked, because a page is only as honest as its host.
 */
import { cut, quote } from "@skein/protocol/Text"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import * as Context from "effect/Context"
import * as Base64 from "effect/encoding/Base64"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Reason } from "./UploadError.ts"
import {
  BuffersFull,
  FileTooLarge,
  Incomplete,
  InvalidName,
  InvalidPart,
  TotalTooLarge,
  TypeNotAccepted,
  UploadError,
  WrongCount
} from "./UploadError.ts"

/** A file that a page declares. */
export interface DeclaredFile {
  readonly name: string
  readonly type: string
  readonly size: number
}

/** A part of a file: base64 of the bytes from `at`. */
export interface Part {
  readonly file: number
  readonly at: number
  readonly data: string
}

/** A file that has arrived. */
export interface ReceivedFile {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** The bounds of the files, and the accepted types. */
export interface FileBounds {
  readonly accept: ReadonlyArray<string>
  readonly maxFiles: number
  readonly maxFileBytes: number
  readonly maxTotalBytes: number
  readonly maxBufferedBytes: number
}

/**
 * The most bytes of a part, which is a message of the page to its host as base64: `AppHost` allows a million characters.
 * A test lowers it.
 */
export const MaxPartBytes: Context.Reference<number> = /* @__PURE__ */ Context.Reference("@skein/apps/MaxPartBytes", {
  defaultValue: () => 262_144
})

interface Incoming extends DeclaredFile {
  bytes: Uint8Array<ArrayBuffer> | undefined
  received: number
}

interface Transfer {
  readonly client: string | undefined
  readonly total: number
  readonly files: ReadonlyArray<Incoming>
}

type Received<A> = Effect.Effect<A, UploadError>

type ReasonClass = new(options: { readonly message: string }) => Reason

const fail = (Reason: ReasonClass, message: string): Received<never> =>
  Effect.fail(new UploadError(new Reason({ message })))

const maxNameChars = 255

const isName = (name: string): boolean =>
  name !== "" && name.length <= maxNameChars && !/[/\\\p{Cc}]/u.test(name) && name !== "." && name !== ".."

const mediaType = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/

/** The media type without parameters, in lower case. One that is malformed says nothing about the file. */
const typeOf = (type: string): string => {
  const name = cut(type, maxNameChars).split(";", 1)[0]!.trim().toLowerCase()
  return mediaType.test(name) ? name : "application/octet-stream"
}

/** Whether an entry of `accept` allows a file, as in the attribute of HTML: `.csv`, `image/*` or `image/png`. */
const accepts = (entry: string, name: string, type: string): boolean => {
  const wanted = entry.trim().toLowerCase()
  if (wanted.startsWith(".")) return name.toLowerCase().endsWith(wanted)
  return wanted.endsWith("/*") ? type.startsWith(wanted.slice(0, -1)) : type === wanted
}

/** The transfers of one app, by the question that each belongs to. */
export const makeFileReceiver = (bounds: FileBounds, maxPartBytes: number) => {
  const transfers = new Map<object, Transfer>()
  /** The bytes of the transfers. */
  const reserved = new KeyedCounter()

  const check = (files: ReadonlyArray<DeclaredFile>, total: number): Received<never> | undefined => {
    const { accept, maxFileBytes, maxFiles, maxTotalBytes } = bounds
    if (files.length === 0) return fail(WrongCount, "Choose a file")
    if (files.length > maxFiles) {
      return fail(WrongCount, `${files.length} files are more than maxFiles (${maxFiles})`)
    }
    for (const { name, size, type } of files) {
      if (!isName(name)) return fail(InvalidName, `The name ${quote(name)} of a file is not allowed`)
      if (size > maxFileBytes) {
        return fail(
          FileTooLarge,
          `The file ${quote(name)} has ${size} bytes, more than maxFileBytes (${maxFileBytes})`
        )
      }
      if (accept.length > 0 && !accept.some((entry) => accepts(entry, name, typeOf(type)))) {
        return fail(TypeNotAccepted, `The file ${quote(name)} is not of an accepted type: ${accept.join(", ")}`)
      }
    }
    return total <= maxTotalBytes
      ? undefined
      : fail(TotalTooLarge, `The files have ${total} bytes, more than maxTotalBytes (${maxTotalBytes})`)
  }

  /** Begins a transfer, and reserves its bytes. It replaces the one that the question had. */
  const begin = (question: object, client: string | undefined, files: ReadonlyArray<DeclaredFile>): Received<void> => {
    release(question)
    const total = files.reduce((sum, { size }) => sum + size, 0)
    const refused = check(files, total)
    if (refused !== undefined) return refused
    const { maxBufferedBytes, maxTotalBytes } = bounds
    const isOver = client !== undefined && reserved.of(client) + total > 2 * maxTotalBytes
    if (isOver || reserved.total + total > maxBufferedBytes) {
      const bound = isOver ? `twice maxTotalBytes (${maxTotalBytes})` : `maxBufferedBytes (${maxBufferedBytes})`
      return fail(BuffersFull, `Too many files arrive at once: ${bound}. Try again later`)
    }
    reserved.add(client, total)
    const incoming = files.map((file): Incoming => ({ ...file, bytes: undefined, received: 0 }))
    transfers.set(question, { client, total, files: incoming })
    return Effect.void
  }

  /** Adds a part. Parts of a file arrive in order. */
  const add = (question: object, { at, data, file: index }: Part): Received<void> => {
    const file = transfers.get(question)?.files[index]
    if (file === undefined) return fail(InvalidPart, "The part belongs to no file")
    const problem = (text: string) => fail(InvalidPart, `A part of the file ${quote(file.name)} ${text}`)
    if (at !== file.received) return problem(`begins at ${at} in the place of ${file.received}`)
    // Four characters of base64 are three bytes.
    if (data.length > Math.ceil(maxPartBytes / 3) * 4) return problem(`has more than ${maxPartBytes} bytes`)
    const bytes = Base64.decode(data)
    if (Result.isFailure(bytes)) return problem("is not base64")
    const { length } = bytes.success
    if (length > maxPartBytes) return problem(`has more than ${maxPartBytes} bytes`)
    if (length === 0 || at + length > file.size) {
      return problem(`has ${length} bytes, and ${file.size - at} are missing`)
    }
    file.bytes ??= new Uint8Array(file.size)
    file.bytes.set(bytes.success, at)
    file.received = at + length
    return Effect.void
  }

  /** Fails unless all bytes have arrived. */
  const complete = (question: object): Received<void> => {
    const transfer = transfers.get(question)
    if (transfer === undefined) return fail(Incomplete, "No files were sent")
    const missing = transfer.files.find(({ received, size }) => received < size)
    return missing === undefined
      ? Effect.void
      : fail(Incomplete, `The file ${quote(missing.name)} has ${missing.received} of ${missing.size} bytes`)
  }

  /** The files of a complete transfer. Their bytes stay reserved until `release`. */
  const files = (question: object): ReadonlyArray<ReceivedFile> => {
    const { files } = transfers.get(question)!
    return files.map(({ bytes = new Uint8Array(0), name, type }) => ({ name, type: typeOf(type), bytes }))
  }

  /** Forgets the transfer of a question, and frees its bytes. */
  const release = (question: object): void => {
    const transfer = transfers.get(question)
    if (transfer === undefined) return
    transfers.delete(question)
    reserved.add(transfer.client, -transfer.total)
  }

  return { begin, add, complete, files, release }
}
