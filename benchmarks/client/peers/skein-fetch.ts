/** Skein over `fetch`. */
import * as Http from "@skein/client/Http"
import type { Connect } from "../face.ts"
import { over } from "../skein.ts"

export const connect: Connect = over(Http.transport)
