"""Language detection: a sentence in each language that PostgreSQL supports, and in some others."""

import pytest
from django.db import connection

from collections_app.lexical.language_detection import detect_language
from collections_app.models import Version
from tests.collections_app.search.searches import add_document, hit_ids, make_collection, run_search

# ruff: noqa: E501, RUF001  (one sentence per line, and letters of other scripts, are intended)
SENTENCES = {
    "arabic": "يمكن طلب السيارة من المكتب الأمامي قبل يوم واحد على الأقل، ولا يجوز أن تستعمل إلا في العمل الذي طلبت من أجله.",
    "armenian": "Տպիչը գտնվում է երրորդ հարկում և այսօր չի աշխատում։",
    "basque": "Inprimagailua ez dabil ondo eta papera amaitu zen atzo, baina hau konpondu egin dute eta orain oso ondo dago.",
    "catalan": "La impressora és al tercer pis i no funciona des d'ahir, però els tècnics són aquí amb una peça nova.",
    "danish": "Printeren er på tredje sal, og den har ikke virket siden i går, men der er en anden som du kan bruge efter møderne.",
    "dutch": "De printer staat op de derde verdieping en werkt niet meer, maar er is ook een andere die je kunt gebruiken.",
    "english": "The printer is on the third floor and it has not worked since yesterday, but there is another one for you.",
    "estonian": "Printer on kolmandal korrusel ja see ei tööta, aga teine on olemas, kui seda on vaja või oma töö on pooleli.",
    "finnish": "Tulostin on kolmannessa kerroksessa, mutta se ei toimi, kun paperi on loppu ja myös muste on vähissä.",
    "french": "L'imprimante est au troisième étage et ne marche plus depuis hier, mais il y en a une autre dans le couloir.",
    "german": "Der Drucker steht im dritten Stock und ist seit gestern nicht mehr bei uns, aber auch die anderen werden repariert.",
    "greek": "Ο εκτυπωτής βρίσκεται στον τρίτο όροφο και δεν λειτουργεί από χθες.",
    "hindi": "प्रिंटर तीसरी मंज़िल पर है और कल से काम नहीं कर रहा है, लेकिन इस कमरे में एक और भी है।",
    "hungarian": "A nyomtató a harmadik emeleten van, de nem működik, mert elfogyott a papír, és még nem hoztak újat, csak holnap.",
    "indonesian": "Pencetak itu ada di lantai tiga dan tidak bisa dipakai untuk dokumen ini karena kertas yang lama sudah habis.",
    "irish": "Tá an printéir ar an tríú hurlár agus níl sé ag obair, ach tá ceann eile sa seomra seo le húsáid ag na daoine.",
    "italian": "La stampante è al terzo piano e non funziona da ieri, ma anche nella sala delle riunioni ce n'è una per gli ospiti.",
    "lithuanian": "Spausdintuvas yra trečiame aukšte ir nuo vakar neveikia, bet kitas yra prie durų, kad būtų galima jį naudoti.",
    "nepali": "प्रिन्टर तेस्रो तलामा छ र हिजो देखि काम गरेको छैन, तर यो कोठामा अर्को पनि छ भने प्रयोग गर्न सकिन्छ।",
    "norwegian": "Skriveren er i tredje etasje, og den har ikke virket siden i går, men det er en annen å bruke etter møtet, ble vi fortalt av dem.",
    "portuguese": "A impressora fica no terceiro andar e não funciona desde ontem, mas há uma outra que os funcionários podem usar.",
    "romanian": "Imprimanta este la etajul trei și nu mai merge de ieri, dar există o alta pentru cei care au fost mutați din clădire.",
    "russian": "Принтер стоит на третьем этаже и со вчерашнего дня не работает, но это не всё: бумаги тоже нет.",
    "serbian": "Штампач је на трећем спрату и не ради од јуче, али се може користити други који је код улаза.",
    "spanish": "La impresora está en el tercer piso y no funciona desde ayer, pero hay otra en la sala que se puede usar.",
    "swedish": "Skrivaren står på tredje våningen och den har inte fungerat sedan i går, men det är en annan som du kan använda.",
    "tamil": "அச்சுப்பொறி மூன்றாவது மாடியில் உள்ளது, நேற்று முதல் வேலை செய்யவில்லை.",
    "turkish": "Yazıcı üçüncü katta ve dünden beri bozuk, ancak bu odada başka bir yazıcı daha var ve çok iyi çalışıyor.",
    "yiddish": "דער דרוקער איז אויף דעם דריטן שטאק און ער ארבעט ניט, אבער עס איז דא נאך איינער פאר די מענטשן.",
}
UNSUPPORTED_SENTENCES = {
    "bulgarian": "Принтерът е на третия етаж и не работи от вчера, но има и друг, който може да се използва.",
    "chinese": "打印机在三楼,从昨天起就不能用了。",
    "czech": "Tiskárna je ve třetím patře a od včera nefunguje, ale při vchodu je také jiná, která se může použít.",
    "hebrew": "המדפסת נמצאת בקומה השלישית והיא לא עובדת מאתמול, אבל יש גם אחרת על יד הכניסה של הבניין.",
    "japanese": "プリンターは三階にありますが、昨日から動いていません。",
    "korean": "프린터는 삼 층에 있지만 어제부터 작동하지 않습니다.",
    "persian": "چاپگر در طبقه سوم است و از دیروز کار نمی‌کند، اما یک دستگاه دیگر هم برای شما هست که می‌توان با آن کار کرد.",
    "polish": "Drukarka stoi na trzecim piętrze i od wczoraj nie działa, ale jest druga, która się nadaje do tego samego.",
    "thai": "เครื่องพิมพ์อยู่ที่ชั้นสามและใช้งานไม่ได้ตั้งแต่เมื่อวาน",
    "ukrainian": "Принтер стоїть на третьому поверсі і від учора не працює, але є ще один, і він також для вас.",
    "vietnamese": "Máy in ở tầng ba và không hoạt động từ hôm qua, nhưng có một máy khác trong phòng này cho các bạn.",
    "names": "Müller, Anna; Schmidt, Peter; García, José; Ivanov, Pyotr",
    "numbers": "4711; 0815; 3.14; 2024-05-19",
    "nothing": "",
    "spaces": " \n\t",
    "code": "for (i = 0; i < n; i++) { sum += a[i]; }",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_language_with_a_configuration_is_detected(language: str) -> None:
    assert detect_language(SENTENCES[language]) == language


@pytest.mark.parametrize("language", ["english", "german", "russian"])
def test_capitals_make_no_difference(language: str) -> None:
    assert detect_language(SENTENCES[language].upper()) == language


@pytest.mark.parametrize("name", UNSUPPORTED_SENTENCES)
def test_other_languages_use_the_simple_configuration(name: str) -> None:
    assert detect_language(UNSUPPORTED_SENTENCES[name]) == "simple"


@pytest.mark.django_db
def test_detection_covers_exactly_the_configurations_of_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cfgname FROM pg_ts_config")
        known_configurations = {name for (name,) in cursor.fetchall()}
    assert {*SENTENCES, "simple"} == known_configurations


def test_few_foreign_words_do_not_change_the_language() -> None:
    english_with_quotes = (
        "The words „der, die, das“ and „und“ are the most frequent ones in German, as it was said before."
    )
    assert detect_language(english_with_quotes) == "english"
    assert detect_language(SENTENCES["english"] * 3 + SENTENCES["russian"]) == "english"


@pytest.mark.django_db
def test_each_document_is_found_by_the_words_of_its_language() -> None:
    collection = make_collection(text_configuration="")
    add_document(collection, "french", SENTENCES["french"])
    add_document(collection, "english", SENTENCES["english"])
    add_document(collection, "german", SENTENCES["german"])
    add_document(collection, "table", "Ports: 80; 443; 8080")
    languages = Version.objects.order_by("pk").values_list("text_configuration", flat=True)
    assert list(languages) == ["french", "english", "german", "simple"]

    for query, expected_ids in {
        "printers": ["english"], "work floors": ["english"], "imprimantes": ["french"], "marcher étages": ["french"],
        "Druckern": ["german"], "Stocks": ["german"], "port": [], "ports": ["table"],
    }.items():  # fmt: skip
        result = run_search(collection, query, mode="text")
        assert hit_ids(result) == expected_ids, query
        assert all(hit.highlights for hit in result.hits)


@pytest.mark.django_db
def test_stop_word_of_one_language_is_not_searched_in_texts_without_a_language() -> None:
    collection = make_collection(text_configuration="")
    for number in range(30):
        add_document(collection, f"english {number}", SENTENCES["english"] + f" Its number is {number}.")
    add_document(collection, "names", "the; where; is; Anna")

    assert hit_ids(run_search(collection, "where is the printer", mode="text", k=3))[0].startswith("english")
    assert hit_ids(run_search(collection, "where is Anna", mode="text"))[0] == "names"


@pytest.mark.django_db
def test_one_language_among_many_documents_of_another_ranks_first_for_its_words() -> None:
    collection = make_collection(text_configuration="")
    for number in range(30):
        add_document(collection, f"french {number}", SENTENCES["french"] + f" Numéro {number}.")
    add_document(collection, "german", SENTENCES["german"])

    assert hit_ids(run_search(collection, "Drucker im dritten Stock 7", mode="text"))[0] == "german"


@pytest.mark.django_db
def test_removed_language_is_not_searched() -> None:
    collection = make_collection(text_configuration="")
    add_document(collection, "one", SENTENCES["french"])
    add_document(collection, "one", SENTENCES["english"])

    assert hit_ids(run_search(collection, "imprimante", mode="text")) == []
    assert hit_ids(run_search(collection, "printers", mode="text")) == ["one"]
