/**
 * The ids of events: the number of a stream in its session, and the number of the event in the stream.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"

/**
 * The place of an event, which its id encodes. In a fleet it has the id of the request of the stream: if the node of the
 * request ends, another node answers it with an error.
 */
export interface StreamPlace {
  readonly stream: number
  readonly event: number
  readonly request: JsonRpc.Id | undefined
}

/** The most characters of the id of a request in the id of an event. Longer ones are left out. */
const maxRequestChars = 100

/** The id of an event. */
export const idOf = ({ event, request, stream }: StreamPlace): string => {
  const encoded = request === undefined ? "" : encodeURIComponent(JSON.stringify(request))
  return `${stream}-${event}` + (encoded === "" || encoded.length > maxRequestChars ? "" : `-${encoded}`)
}

/** Parses the id of an event. With `hasRequest` it may have the id of a request. */
export const parseId = (id: string, hasRequest: boolean): StreamPlace | undefined => {
  const found = /^(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})(?:-(.+))?$/.exec(id)
  if (found === null) return undefined
  const [stream, event] = [Number(found[1]), Number(found[2])]
  if (!Number.isSafeInteger(stream) || !Number.isSafeInteger(event)) return undefined
  if (found[3] === undefined) return { stream, event, request: undefined }
  const request = hasRequest ? decodeRequest(found[3]) : undefined
  return request === undefined ? undefined : { stream, event, request }
}

const decodeRequest = (text: string): JsonRpc.Id | undefined => {
  if (text.length > maxRequestChars) return undefined
  try {
    const id: unknown = JSON.parse(decodeURIComponent(text))
    return typeof id === "string" || typeof id === "number" ? id : undefined
  } catch {
    return undefined
  }
}
