import { hitlEvents } from '../base/hitl-events.ts'
import { defaultRisk } from '../policy/risk/risk-signals.ts'
import { chosenSecretProblem } from './entropy.ts'
import { hitlEvent, hostName, hostPattern, httpUrl, mailAddress, slackId } from './formats.ts'
import { boolean, choice, integer, list, number, objects, optional, secret, secretFile, text } from './setting.ts'

/** Whose events a receiver gets. */
const wantedRequests = {
  Rules: list('Rules whose requests are sent, by name; empty sends all.'),
  Owners: list('Owners of the agents whose events are sent; empty sends all.'),
} as const

/** Which events a receiver gets, and when. */
const wantedEvents = {
  Events: list(`Kinds of events to send, of ${hitlEvents.join(', ')}; empty sends pending.`, hitlEvent),
  ...wantedRequests,
  AfterMinutes: integer(0, 'Requests are sent once they have waited so long undecided; 0 sends them at once.', {
    max: 720,
  }),
} as const

/** Settings under `HumanInTheLoop`: what is held for review, and who gets to know of it. */
export const hitl = {
  Threshold: number(defaultRisk.threshold, 'A risk score strictly above this sends an allowed request to review.', {
    min: 0,
    max: 1,
  }),
  TimeoutSeconds: integer(3_600, 'Time a request waits for review before it expires.', { min: 1, max: 2_592_000 }),
  WaitSeconds: integer(
    0,
    'How long a held call waits for its outcome unless its rule says otherwise. With 0, calls of models wait 240 seconds.',
    {
      max: 2_592_000,
    },
  ),
  MaxPendingRequests: integer(1_000, 'Requests waiting for review, in all; more get 429.', { min: 1 }),
  MaxPendingPercentPerAgent: integer(20, 'Share of MaxPendingRequests and of MaxStoredBytes for one agent.', {
    min: 1,
    max: 100,
  }),
  FourEyes: choice(
    ['self', 'owner'],
    'self',
    'Requests that a reviewer may not decide: their own, or all of the same owner.',
  ),
  MaxStoredBodyBytes: integer(8_388_608, 'Largest body held for review, bytes; more get 413.', { min: 0 }),
  MaxStoredBytes: integer(
    1_073_741_824,
    'Bytes stored of held requests and their answers, in all, until RetentionSeconds after their end; more get 429.',
    { min: 0 },
  ),
  MaxStoredResponseBytes: integer(1_048_576, 'Largest upstream answer kept for the agent, bytes.', { min: 0 }),
  RetentionSeconds: integer(86_400, 'Time for which decided requests stay readable.', { min: 60, max: 31_536_000 }),
  LeaseSeconds: integer(660, 'Time after which a replay without a reported outcome becomes unknown.', { min: 5 }),
  Webhooks: objects(
    {
      Url: secret('URL that gets the events of requests held for review. It often contains a key.', httpUrl),
      UrlFromFile: secretFile('Url'),
      Format: choice(
        ['generic', 'slack', 'teams', 'discord', 'ntfy', 'pagerDuty'],
        'generic',
        'generic: the event as JSON. The others: a message for people with a link; pagerDuty opens and resolves an incident.',
      ),
      Key: secret('Access token of ntfy, or integration key of PagerDuty (Events API v2).'),
      KeyFromFile: secretFile('Key'),
      Secret: secret(
        'Key of the HMAC-SHA256 in Gateway-Signature, 16 bytes or more; absent: not signed.',
        chosenSecretProblem,
      ),
      SecretFromFile: secretFile('Secret'),
      ...wantedEvents,
    },
    'Receivers of the events of requests held for review, each with the settings that are described here.',
  ),
  Slack: {
    BotToken: secret('Bot token of the Slack app (xoxb-…), which sends and edits the messages; absent: no Slack app.'),
    AppToken: secret('App-level token (xapp-…): clicks come over an outgoing WebSocket, without an open port.'),
    SigningSecret: secret('Signing secret of the app: clicks come to POST /hitl/slack.'),
    Team: optional('Id of the workspace; clicks of other workspaces are refused.', slackId),
    Channels: objects(
      { Id: optional('Id of a channel that the app is a member of.', slackId), ...wantedRequests },
      'Channels that get the requests.',
    ),
    Verdicts: choice(
      ['none', 'deny', 'rules'],
      'deny',
      'Verdicts that linked reviewers may give in Slack; rules: approvals too, where the rule has chatApproval.',
    ),
    ApiUrl: text('https://slack.com/api', 'Address of the Web API; another one for GovSlack.', httpUrl),
  },
  Push: {
    Enabled: boolean(
      false,
      'Reviewers may switch on notifications of their browsers and phones in the console (Web Push).',
    ),
    Hosts: list('Push services of browsers that may be called.', hostPattern, [
      ...['fcm.googleapis.com', 'updates.push.services.mozilla.com'],
      ...['.push.apple.com', '.notify.windows.com'],
    ]),
  },
  Email: {
    Host: optional('SMTP server for e-mail about requests held for review; absent: no e-mail.', hostName),
    Port: integer(587, 'TCP port: 465 begins with TLS, others change to it. Without TLS only on this machine.', {
      min: 1,
      max: 65_535,
    }),
    User: optional('Name with which to sign in; absent: no sign-in.'),
    Password: secret('Password of User.'),
    From: optional('Address of the sender.', mailAddress),
    To: list('Addresses that get the messages.', mailAddress),
    ...wantedEvents,
  },
} as const
