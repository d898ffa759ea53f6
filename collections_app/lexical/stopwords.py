"""Stop words by which languages are recognized, and letters that some languages do not use.

Each key is a text search configuration, or "simple" followed by a language without a configuration.
"""

# ruff: noqa: RUF001  (letters of other scripts that look like Latin ones are intended)

LATIN = {
    "basque": "eta da ez dute du ere bat zen baina izan dira hau zuen egin duen edo ziren beste oso horren arte",
    "catalan": "els dels amb una és per al són també aquest aquesta però més com les va ser seva entre molt les i",
    "danish": "og det er at en den til på de som med for af ikke har der var han et blev også men sig fra efter hvor",
    "dutch": "de het een van en is dat op te zijn voor met niet aan er om ook als bij maar of uit naar werd wordt deze",
    "english": "the of and to in is that it was for on are as with his they at be this from have or by had but were",
    "estonian": "ja on ei et see oli ka kui mis aga oma seda või mida ning pole siis nende tema kes olid selle välja",
    "finnish": "ja on ei että se oli hän mutta kun joka myös ovat sen mukaan kuin tai jos vain niin olla hänen sitä",
    "french": "le la les des et est une dans que qui pour pas sur au avec il du par plus ce sont son cette été mais",
    "german": "der die und das ist nicht den von zu mit dem des ein eine auf für sich auch als im werden wird sind bei",
    "hungarian": "a az és hogy nem is egy volt meg ez de csak már mint vagy kell még ki el azt van lehet ezt szerint",
    "indonesian": "yang dan di dengan untuk tidak ini itu dari dalam pada adalah ke akan oleh juga atau sebagai bahwa",
    "irish": "agus an na is ar go bhí sé le ag a tá do ach i sin leis seo bhfuil nach gur raibh chun mar ó iad sí ní",
    "italian": "di che il la per non una sono del con della è dei nel alla più gli anche come ma si dal delle questo",
    "lithuanian": "ir yra kad tai su bet buvo ne kaip iš į jis nuo per už ar jo taip savo dėl tik jie apie bei prie",
    "norwegian": "og det er på en til som av for med ikke den har de å var et han fra om ble men seg også etter ved",
    "portuguese": "de que não uma os do da para com em por mais as dos como mas foi ao das seu sua são também pelo à",
    "romanian": "și în de la cu pe nu care este că un din mai sunt sau fost pentru prin după al ce fi au lui ca între",
    "serbian": "je u i na se da su za od koji kao ili koja bio nije ne sa ali iz biti po ovo što kako samo može između",
    "spanish": "de la que el en y los del se las por un para con no una su al es como más pero sus fue son este entre",
    "swedish": "och det att är en som på för av med inte den till har de ett om var han från eller vid men sig efter",
    "turkish": "ve bir bu için ile olarak da de çok daha olan gibi ancak en ise kadar sonra değil ne ya her var göre",
    # PostgreSQL has no stemmer for these, but they must not be mistaken for similar languages.
    "simple polish": "i w na się nie do z że to jest o jak za od przez po co dla był ale czy są oraz tym lub jego może",
    "simple czech": "a se v na je že s z do o i to ve pro jako by jsou ale k po za byl nebo který není také aby při",
    "simple slovak": "a sa v na je že s z do o aj to vo pre ako by sú ale k po za bol alebo ktorý nie tiež aby pri tým",
    "simple slovenian": "in je v na se da za so s z ki pri tudi po ne od ali kot pa iz bil ker bi lahko med ta so sta",
    "simple latvian": "un ir ar no par uz ka kā bija arī lai tas pēc ne viņa to tiek vai gan bet kas līdz tika savu",
    "simple vietnamese": "và của là có trong được cho không các với một đã này những để người từ khi đến cũng như về",
    "simple tagalog": "ang ng sa mga na at ay ito para siya hindi kung may nang isang mula ni si kanyang bilang",
    "simple albanian": "dhe në të e i një për me që është nga si nuk më se ka janë por ose nga kjo ky ishte tij",
}
CYRILLIC = {
    "russian": "и в не на что с он как это по но из к у за от для его а был то же бы так при все или они также были",
    "serbian": "је у и на се да су за од који као или која био није не са али из бити по ово што како само може",
    "simple bulgarian": "и на се за да в от е са с по не че като до или който но към при това след има те си ще през",
    "simple ukrainian": "і в не на що з він як це по але із до у за від для його а був то та при й або вони також є",
    "simple belarusian": "і ў не на што з ён як гэта па але да у за ад для яго а быў то пры або яны таксама ёсць",
    "simple macedonian": "и во на се да од е за со не дека ја што го како или тоа ги биде но има по кој беше ќе",
    "simple mongolian": "нь байна ба бол юм энэ гэж болон тэр байсан дээр гэсэн их мөн оны хийх",
}
# Letters that a language never uses, because Russian and similar languages share most of their stop words.
UNUSED_LETTERS = {
    "russian": "іїєґўјљњћђџѓќѕөү",
    "serbian": "йщъыьэюяёіїєґўѓќѕөү",
    "simple bulgarian": "ыэёіїєґўјљњћђџѓќѕөү",
    "simple ukrainian": "ыэёъўјљњћђџѓќѕөү",
    "simple belarusian": "ищъїєґјљњћђџѓќѕөү",
    "simple macedonian": "йщъыьэюяёіїєґўђћөү",
    "simple mongolian": "іїєґўјљњћђџѓќѕ",
}
DEVANAGARI = {
    "hindi": "के में है की और से का को पर हैं एक यह ने कि था इस भी नहीं ही कर हो थे जो लिए तो था गया या वह",
    "nepali": "छ र को मा ले हो पनि लाई गर्न यो भएको छन् एक तथा गरेको थियो गर्ने यस हुन् भने अनि हुने भन्ने",
    "simple marathi": "आहे आणि या ते व हे होते एक आहेत तो ही नाही होता की असे मध्ये येथे हा त्या झाला",
}
HEBREW = {
    "yiddish": "און איז די דער פון אין צו ניט מיט האט אז פאר דאס איר אויף זיך ווי ער וואס בײַ אַז פֿון האָט דאָס",
    "simple hebrew": "של את על הוא לא זה עם גם היא כי אל או כל היה אם בין אך יותר היו אשר אבל הם מה",
}
ARABIC = {
    "arabic": "في من على إلى أن عن هذا التي الذي مع ما لا كان هو هذه كما بين أو قد ذلك بعد كل ثم لم هي عند غير",
    "simple persian": "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز شد شده ها بود می اما هر",
    "simple urdu": "کے میں کی ہے اور سے کا کو پر ہیں نے کہ یہ ایک اس بھی نہیں تھا ہو کر جو تھے گیا لیے",
}
STOPWORDS = {"latin": LATIN, "cyrillic": CYRILLIC, "devanagari": DEVANAGARI, "hebrew": HEBREW, "arabic": ARABIC}
