/** Words that say nothing about a text's subject. Written as sentences of one word each, for English and German. */
const ENGLISH = `a about above across after afterwards again against all almost alone along already also although always am
among an and another any anyone anything anywhere are aren't around as at away back be became because become becomes been
before behind being below beneath beside besides between beyond both but by came can can't cannot come comes could
couldn't did didn't do does doesn't doing don't done down during each either else enough especially etc even ever every
everyone everything everywhere except far few first for former from further gave get gets getting give given gives go
goes going gone got had hadn't has hasn't have haven't having he he's hence her here hers herself him himself his how
however i i'm i've if in indeed instead into is isn't it it's its itself just keep kept know known last later least less
let like likely made mainly make makes making many may maybe me meanwhile might mine more moreover most mostly much must
my myself near nearly neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once
one ones only onto or other others otherwise our ours ourselves out over own per perhaps put quite rather re really
said same saw say says second see seem seemed seems seen several shall she should shouldn't since so some somebody
somehow someone something sometimes somewhere soon still such take taken takes than that that's the their theirs them
themselves then thence there thereby therefore these they they're thing things this those though three through
throughout thus till to together too took toward towards two under unless until up upon us use used uses using usually
very via want was wasn't way we we're well went were weren't what whatever when whenever where whereas wherever whether
which while who whoever whole whom whose why will with within without won't would wouldn't yet you you're your yours
yourself yourselves`;

const GERMAN = `ab aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes auch auf aus außer
bald bei beide beiden beim bereits bin bis bist bleibt da dabei dadurch dafür dagegen daher damit danach daneben dann
daran darauf daraus darf darin darüber darum das dass dasselbe davon davor dazu dein deine deinem deinen deiner dem den
denen denn der deren derselbe des deshalb dessen dich die dies diese dieselbe diesem diesen dieser dieses dir doch dort
du durch dürfen ebenso ein eine einem einen einer eines einige einigen einiger einmal er erst es etwa etwas euch euer
eure fast für ganz gar gegen gemacht gibt hab habe haben hat hatte hatten her hier hin hinter ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer im immer in indem ins ist ja je jede jedem jeden jeder jedes jedoch jene jenem jenen jener jenes jetzt
kann kein keine keinem keinen keiner können konnte machen macht man manche manchem manchen mancher manches mehr mein
meine meinem meinen meiner mich mir mit muss müssen musste nach nachdem neben nein nicht nichts noch nun nur ob oben
oder oft ohne schon sehr sei sein seine seinem seinen seiner seit selbst sich sie sind so sobald sodass solche solchem
solchen solcher soll sollen sollte sondern sonst soweit sowie sowohl statt trotz über um und uns unser unsere unserem
unseren unserer unter viel viele vielen vom von vor während war waren warum was wegen weil weiter welche welchem welchen
welcher welches wenig wenn wer werde werden wie wieder will wir wird wo wobei wohl wollen wollte worden wurde wurden zu
zum zur zwar zwischen`;

export const STOP_WORDS: ReadonlySet<string> = new Set(`${ENGLISH} ${GERMAN}`.split(/\s+/));
